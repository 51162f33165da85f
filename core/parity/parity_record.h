// What a training run computed, tensor by tensor and rank by rank, in global coordinates, so that two records can be
// compared whatever their layouts. Thread rule: plain data.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/config/train_config.h"
#include "core/parity/global_slice.h"

namespace ranklab {

// The parts of a step, in causal order.
enum class ParityPhase : uint8_t { kBatch, kWeights, kForward, kLoss, kBackward, kNorm, kUpdate };
std::string_view name(ParityPhase phase);

struct TensorKey {
  int64_t step = 0;
  ParityPhase phase = ParityPhase::kForward;
  std::string name;  // name of a module or parameter: "layers.1.attention"
  std::string kind;  // "output", "grad_output", "grad", "weight", "exp_avg"

  auto operator<=>(const TensorKey&) const = default;
  std::string text() const;  // "layers.1.attention output"
};

// One rank's part of a tensor.
struct TensorPiece {
  int rank = 0;
  int order = 0;  // position in the order in which this rank computed tensors in the step
  GlobalSlice slice;
  at::Tensor value;  // flat, in host memory
};
// Whether two tensors are bitwise equal; a NaN equals itself.
bool same_bits(const at::Tensor& a, const at::Tensor& b);
using TensorPieces = std::map<TensorKey, std::vector<TensorPiece>>;

// The order in which a run adds numbers up. `reversed`: microbatches, and so their gradients, from the last to the
// first. `split`: products of linear layers in two halves of their contraction.
struct SumOrder {
  bool reversed = false, split = false;
};

// The coordinates of each rank of a record. They come from the DeviceMesh of a run of this program, or from the
// coordinates written in files.
class ParityMesh {
 public:
  ParityMesh() = default;  // one rank
  explicit ParityMesh(const DeviceMesh& mesh);
  // Takes each rank's coordinates, "dp 0 of 2, tp 1 of 4" or "one rank". Throws kBadFile.
  explicit ParityMesh(const std::vector<std::string>& coordinates);

  int world_size() const { return static_cast<int>(labels_.size()); }
  int size(Axis axis) const { return sizes_[static_cast<size_t>(axis)]; }
  int coordinate(Axis axis, int rank) const { return places_.at(static_cast<size_t>(rank))[static_cast<size_t>(axis)]; }
  const std::string& label(int rank) const { return labels_.at(static_cast<size_t>(rank)); }  // "dp0 tp1"

 private:
  using Numbers = std::array<int, static_cast<size_t>(Axis::kCount)>;
  static Numbers filled(int value);
  Numbers sizes_ = filled(1);
  std::vector<Numbers> places_ = {filled(0)};
  std::vector<std::string> labels_ = {"rank0"};
};

struct ParityRecord {
  std::string title;                              // the layout as flags; for files, their folder
  c10::ScalarType type = c10::ScalarType::Float;  // distances are reported in epsilons of this type
  ParityMesh mesh = {};
  std::shared_ptr<const RunPlan> plan = nullptr;  // null: read from files
  TensorPieces tensors = {};
  TensorPieces local_grads = {};  // before any reduction: this rank's summand
  std::string ended = {};         // the error that ended the run before its last step; empty: the record is complete
};

// Whether a module of ranklab's models reads the sum of the residual stream. That sum arrives as one tensor or as two,
// so the module's input depends on where pipeline stages begin, and such inputs are not compared. The norms in front of
// the modules show the sum.
bool reads_residual_stream(const std::string& path);

// The tensors of a record in the order in which they depend on each other: by step and phase, in the forward from the
// first layer to the last, in the backward from the last to the first; a parameter's gradient comes after the gradient
// of its module's output.
std::vector<TensorKey> causal_order(const ParityRecord& record);

}  // namespace ranklab
