// Parameters that exist only while they are used (ZeRO stage 3: Rajbhandari et al. 2020, arXiv 1910.02054; PyTorch
// FSDP: Zhao et al. 2023, arXiv 2304.11277): a model calls enter() and leave() around its use of a unit, and the owner
// of the shards gathers and frees the whole parameters. A unit is a layer, the embedding, an MTP module or the modules
// after the last layer. Uses may nest and overlap; each enter() has its leave(). Thread rule: its rank's thread; ranks
// over which a unit is sharded make the same calls in the same order.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace ranklab {

class ParameterGate {
 public:
  virtual ~ParameterGate() = default;
  // Makes the unit's parameters available until leave(). `next`, if not empty, is the unit used next, which may be
  // prefetched.
  virtual void enter(const std::string& unit, const std::string& next) = 0;
  virtual void leave(const std::string& unit) = 0;
};

// A part of a model and the units whose parameters it uses.
struct GatedPart {
  ParameterGate* gate = nullptr;                      // null: all parameters are always available
  std::vector<std::string> units;                     // names of the units it uses (ModelUnit)
  std::string next_forward = {}, next_backward = {};  // the first unit of the next part; empty: none
};

// Calls compute(inputs) with the units gathered, and gathers them again for its backward (and a third time for deferred
// weight gradients, deferred_grads.h). Inputs and outputs are one or two tensors each; the second may be undefined. If
// none of a part's inputs requires a gradient, its backward must not need its parameters (an embedding).
using GatedTensors = std::vector<at::Tensor>;
GatedTensors gated(const GatedPart& part, const GatedTensors& inputs,
                   const std::function<GatedTensors(const GatedTensors&)>& compute);

}  // namespace ranklab
