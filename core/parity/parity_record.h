// What a training run computed, tensor by tensor and rank by rank, in global coordinates: two of them can be compared
// whatever their layouts. Thread rule: plain data.
#pragma once
#include <ATen/core/Tensor.h>

#include <compare>
#include <cstdint>
#include <map>
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
  std::string name;  // of a module or parameter: "layers.1.attention"
  std::string kind;  // "output", "grad_output", "grad", "weight", "exp_avg"

  auto operator<=>(const TensorKey&) const = default;
  std::string text() const;  // "layers.1.attention output"
};

// What one rank holds of a tensor.
struct TensorPiece {
  int rank = 0;
  int order = 0;  // among what this rank computed in the step
  GlobalSlice slice;
  at::Tensor value;  // flat, in host memory
};
using TensorPieces = std::map<TensorKey, std::vector<TensorPiece>>;

struct ParityRecord {
  RunPlan plan;
  TensorPieces tensors = {};
  TensorPieces local_grads = {};  // before any reduction: this rank's share of a sum
  std::string ended = {};         // what ended the run before its last step; empty: it is complete
};

// The tensors of a record in the order in which they depend on each other: by step and phase, forward from the first
// layer to the last, backward from the last to the first, a parameter's gradient where the gradient of its module's
// output has arrived.
std::vector<TensorKey> causal_order(const ParityRecord& record);

}  // namespace ranklab
