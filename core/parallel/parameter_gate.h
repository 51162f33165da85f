// Parameters that are not there all the time (ZeRO stage 3: Rajbhandari et al. 2020, arXiv 1910.02054; PyTorch FSDP:
// Zhao et al. 2023, arXiv 2304.11277): a model says when it begins and ends to use those of a unit, and whoever keeps
// the shards brings and frees the whole. A unit is a layer, the embedding, an MTP module or what follows the last
// layer. Uses nest and may overlap; each enter() has its leave(). Thread rule: its rank's thread; ranks that share out
// a unit make the same calls in the same order.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace ranklab {

class ParameterGate {
 public:
  virtual ~ParameterGate() = default;
  // The unit's parameters are there until leave(). `next`, if not empty, is used next: it may be brought meanwhile.
  virtual void enter(const std::string& unit, const std::string& next) = 0;
  virtual void leave(const std::string& unit) = 0;
};

// A part of a model and the units whose parameters it uses.
struct GatedPart {
  ParameterGate* gate = nullptr;                      // null: everything is there
  std::vector<std::string> units;                     // names of what it uses (ModelUnit)
  std::string next_forward = {}, next_backward = {};  // the first unit of the part that comes next; empty: none
};

// Calls part(inputs) with the units there, in forward, and again while its backward runs (also where weight gradients
// are deferred, deferred_grads.h: then a third time). Of the one or two tensors each way the second may be undefined. A
// part none of whose inputs requires a gradient must not need its parameters in backward (an embedding).
using GatedTensors = std::vector<at::Tensor>;
GatedTensors gated(const GatedPart& part, const GatedTensors& inputs,
                   const std::function<GatedTensors(const GatedTensors&)>& compute);

}  // namespace ranklab
