// Splits parameters into those with and without weight decay, as parallel lists that ATen's fused updates take, and
// keeps fp32 masters of those in 16 bits (Micikevicius et al. 2018, arXiv 1710.03740): the update happens in fp32, and
// the parameter is its rounding. Offloaded, masters and moments lie in the host's memory and the update runs there
// (ZeRO-Offload: Ren et al. 2021, arXiv 2101.06840): a gradient comes, an updated parameter goes back. Internal to
// core/optim. Memory: 4 bytes an element that is in 16 bits or offloaded, and while an update runs those of the
// largest parameter's gradient. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <vector>

#include "core/nn/parameter.h"

namespace ranklab {

struct ParamGroup {
  bool decay = true;
  std::vector<Parameter*> parameters;
  std::vector<at::Tensor> masters;  // of `parameters`; empty when those are updated themselves

  bool empty() const { return parameters.empty(); }
  // What is updated: the masters, or the parameters' data.
  std::vector<at::Tensor> weights() const;
  // Tensors like weights(), zero, that the optimizer keeps.
  std::vector<at::Tensor> zeros() const;
  void clear_grads() const;
  // Masters into the parameters.
  void publish() const;

  // Calls update(weights, grads, first, count) with consecutive parts of the group: all of it, or with masters a
  // parameter at a time, whose gradient is widened for it; then the masters are rounded into the parameters.
  using Update = std::function<void(at::TensorList weights, at::TensorList grads, size_t first, size_t count)>;
  // `moments`: fp32 numbers that the update reads and writes an element, for its cost.
  void update(int moments, const Update& update) const;
};

std::array<ParamGroup, 2> group_by_decay(const std::vector<Parameter*>& parameters, bool offload);

}  // namespace ranklab
