// One fragment of DiLoCo's outer optimization (Douillard et al. 2023, arXiv 2311.08105; streaming: arXiv 2501.18512).
// The outer parameters are the same in all replicas. start() sends how far this replica has moved away from them, and
// update() takes the mean of all replicas as the gradient of an SGD step with momentum, as torch.optim.SGD computes it.
// The replica then continues from the new outer parameters, or from a mixture with its own. Cost: an all_reduce of the
// elements in fp32 (fp64 where weights have it). Memory: two numbers per element, and one more while an all_reduce
// runs. Thread rule: its rank's thread; every replica makes the same calls.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/comm/communicator.h"

namespace ranklab {

struct OuterRule {
  double lr = 0.7;
  double momentum = 0.9;
  bool nesterov = true;
  double alpha = 0;            // share of its own weights that a replica keeps
  bool keeps_pending = false;  // updates come later than starts: the mean movement is part of the state
};

class OuterUpdate {
 public:
  // REQUIRES: at least one weight. `weights`: flat, contiguous tensors that the replica's optimizer updates, possibly
  // in host memory. `replicas`: the ranks with the same elements in other replicas, which must outlive this object;
  // they exchange tensors on `device`.
  OuterUpdate(std::vector<at::Tensor> weights, Communicator& replicas, at::Device device, const OuterRule& rule);
  // The movements are all-reduced while training continues.
  void start();
  void update();  // waits
  // Waits; pending() then has the mean movement, which a restored object passes to update() in place of a start().
  void settle();

  // Parts of the state for weight i, with its size, to save and to restore: outer parameters, momentum, and, if the
  // rule keeps it, the mean movement.
  at::Tensor outer(size_t i) const { return part(outer_, i); }
  at::Tensor momentum(size_t i) const { return part(momentum_, i); }
  at::Tensor pending(size_t i) const { return part(pending_, i); }

 private:
  at::Tensor part(const at::Tensor& all, size_t i) const { return all.narrow(0, offsets_[i], weights_[i].numel()); }
  at::Tensor gathered() const;

  std::vector<at::Tensor> weights_;
  std::vector<int64_t> offsets_;
  Communicator& replicas_;
  at::Device device_;
  OuterRule rule_;
  at::Tensor outer_, momentum_, pending_;
  WorkPtr work_;
};

}  // namespace ranklab
