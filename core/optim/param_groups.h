// Splits parameters into those with and without weight decay, as parallel lists that ATen's fused updates take, and
// keeps fp32 masters of those in 16 bits (Micikevicius et al. 2018, arXiv 1710.03740): the update happens in fp32, and
// the parameter is its rounding. What is kept in 16 bits instead (parameters without masters, moments) is widened for
// the update and rounded to nearest after it. Offloaded, masters and moments lie in the host's memory and the update
// runs there (ZeRO-Offload: Ren et al. 2021, arXiv 2101.06840): a gradient comes, an updated parameter goes back.
// Internal to core/optim. Memory: 4 bytes an element that has a master or is offloaded, and while an update runs 4
// bytes an element of the largest parameter for each of gradient, weight and moments that is kept in 16 bits. Thread
// rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/nn/parameter.h"

namespace ranklab {

// Of each moment the tensors of a group's parameters.
using GroupMoments = std::vector<std::vector<at::Tensor>>;

struct ParamGroup {
  bool decay = true;
  std::vector<Parameter*> parameters;
  std::vector<at::Tensor> masters;  // of `parameters`; empty when those are updated themselves

  bool empty() const { return parameters.empty(); }
  // What is updated: the masters, or the parameters' data.
  std::vector<at::Tensor> weights() const;
  // Tensors like weights(), zero, that the optimizer keeps; of no type: that in which updates are computed.
  std::vector<at::Tensor> zeros(std::optional<at::ScalarType> type = std::nullopt) const;
  void clear_grads() const;
  // Masters into the parameters.
  void publish() const;

  // Calls update(weights, grads, moments) with all of the group, or a parameter at a time where something of it is to
  // be widened, multiplied or copied from another device; then the masters are rounded into the parameters. Gradients
  // are multiplied by `factor` when they are wide.
  using Update =
      std::function<void(at::TensorList weights, at::TensorList grads, std::span<const std::vector<at::Tensor>>)>;
  void update(const GroupMoments& moments, double factor, const Update& update) const;
  // Bytes that one kernel for the whole update reads and writes.
  double traffic_bytes(const GroupMoments& moments) const;

 private:
  bool as_kept(const GroupMoments& moments, double factor) const;
  void update_one(size_t index, const GroupMoments& moments, double factor, const Update& update) const;
};

struct ParamGroupOptions {
  bool offload = false;
  bool masters = true;  // of parameters in 16 bits
};
std::array<ParamGroup, 2> group_by_decay(const std::vector<Parameter*>& parameters, const ParamGroupOptions& options);

}  // namespace ranklab
