// What the types of a run's tensors have shown to be wrong (type_checker.h), from all ranks. Torch-free. Thread rule:
// add() from any thread; the rest when the run is over.
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "core/base/vocabulary.h"

namespace ranklab {

// In the order of a step.
enum class TypePhase : uint8_t { kForward, kBackward, kReduction, kNorm, kUpdate };
const char* name(TypePhase phase);

struct TypeFinding {
  TypePhase phase = TypePhase::kForward;
  int64_t order = 0;  // in its rank's step
  int rank = 0;
  std::string module;  // or parameter: "layers.1.attention.qkv.weight"
  std::string what;    // the operator or collective
  Axis axis = Axis::kCount;
  std::string type;            // of the tensor: "partial over tp, varying over dp"
  std::string got, want, fix;  // sentences without an end
};

class TypeReport {
 public:
  void add(TypeFinding finding);
  void count(int64_t operators, int64_t gradients, int64_t untyped);

  // By phase, then by the order in which ranks came upon them; each thing once.
  std::vector<TypeFinding> findings() const;
  // The module and the axis of the first of them, "final_norm.weight, tp"; "" without one.
  std::string first_named() const;
  int64_t operators() const { return operators_; }  // that were followed, on all ranks that ran
  int64_t gradients() const { return gradients_; }  // of parameters
  int64_t untyped() const { return untyped_; }      // ... whose type is not known
  // Throws kCheckFailed with the first finding.
  void check() const;

 private:
  mutable std::mutex mutex_;
  std::vector<TypeFinding> findings_;
  int64_t operators_ = 0, gradients_ = 0, untyped_ = 0;
};

}  // namespace ranklab
