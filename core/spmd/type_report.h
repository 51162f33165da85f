// The errors that the types of a run's tensors have revealed (type_checker.h), from all ranks. Torch-free. Thread rule:
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
  int64_t order = 0;  // within its rank's step
  int rank = 0;
  std::string module;  // module or parameter: "layers.1.attention.qkv.weight"
  std::string what;    // the operator or collective
  Axis axis = Axis::kCount;
  std::string type;            // type of the tensor: "partial over tp, varying over dp"
  std::string got, want, fix;  // sentences without a final period
};

class TypeReport {
 public:
  void add(TypeFinding finding);
  void count(int64_t operators, int64_t gradients, int64_t untyped);

  // Ordered by phase, then by the order in which ranks found them; each finding once.
  std::vector<TypeFinding> findings() const;
  // The module and the axis of the first finding, "final_norm.weight, tp"; "" if there is none.
  std::string first_named() const;
  int64_t operators() const { return operators_; }  // operators that were followed, on all ranks that ran
  int64_t gradients() const { return gradients_; }  // gradients of parameters
  int64_t untyped() const { return untyped_; }      // gradients whose type is not known
  // Throws kCheckFailed with the first finding.
  void check() const;

 private:
  mutable std::mutex mutex_;
  std::vector<TypeFinding> findings_;
  int64_t operators_ = 0, gradients_ = 0, untyped_ = 0;
};

}  // namespace ranklab
