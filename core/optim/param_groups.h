// Splits parameters into those with and without weight decay, as the parallel lists that ATen's fused updates take, and
// keeps fp32 masters of 16-bit parameters (Micikevicius et al. 2018, arXiv 1710.03740): the update runs in fp32, and
// the parameter is the rounded master. Other tensors stored in 16 bits (parameters without masters, moments) are
// widened for the update and then rounded to nearest. With offloading, masters and moments are in host memory and the
// update runs there (ZeRO-Offload: Ren et al. 2021, arXiv 2101.06840): gradients are copied to the host, and updated
// parameters back to the device. Internal to core/optim. Memory: 4 bytes per element that has a master or is offloaded;
// during an update also 4 bytes per element of the largest parameter for each of its gradient, weight and moments that
// is stored in 16 bits. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/nn/parameter.h"
#include "core/optim/optimizer.h"

namespace ranklab {

// Indexed by moment, then by parameter of the group.
using GroupMoments = std::vector<std::vector<at::Tensor>>;

struct ParamGroup {
  bool decay = true;
  std::vector<Parameter*> parameters;
  std::vector<at::Tensor> masters;  // one per parameter; empty if the parameters themselves are updated

  bool empty() const { return parameters.empty(); }
  // The tensors that are updated: the masters, or the parameters' data.
  std::vector<at::Tensor> weights() const;
  // Zero tensors shaped like weights(), for the optimizer's state. Without a type they have the type in which updates
  // are computed.
  std::vector<at::Tensor> zeros(std::optional<at::ScalarType> type = std::nullopt) const;
  void clear_grads() const;
  // Adds the states of the group's parameters. `names` are the names of the moments; there may be none.
  void add_states(const GroupMoments& moments, std::span<const char* const> names,
                  std::vector<OptimizerState>& states) const;
  // Copies the masters into the parameters.
  void publish() const;

  // Calls update(weights, grads, moments) once with the whole group, or per parameter if something must be widened,
  // scaled or copied from another device; then rounds the masters into the parameters. Gradients are multiplied by
  // `factor` after they are widened.
  using Update =
      std::function<void(at::TensorList weights, at::TensorList grads, std::span<const std::vector<at::Tensor>>)>;
  void update(const GroupMoments& moments, double factor, const Update& update) const;
  // Whether the tensors of the whole group can be updated in place, in the types in which they are stored.
  bool as_kept(const GroupMoments& moments, double factor) const;
  // Bytes read and written if a single kernel does the whole update.
  double traffic_bytes(const GroupMoments& moments) const;

 private:
  void update_one(size_t index, const GroupMoments& moments, double factor, const Update& update) const;
};

struct ParamGroupOptions {
  bool offload = false;
  bool masters = true;  // fp32 masters of 16-bit parameters
};
std::array<ParamGroup, 2> group_by_decay(const std::vector<Parameter*>& parameters, const ParamGroupOptions& options);

}  // namespace ranklab
