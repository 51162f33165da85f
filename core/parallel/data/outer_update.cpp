#include "core/parallel/data/outer_update.h"

#include <utility>

#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

at::ScalarType type_of(const std::vector<at::Tensor>& weights) {
  at::ScalarType type = at::kFloat;
  for (const at::Tensor& weight : weights) type = c10::promoteTypes(type, weight.scalar_type());
  return type;
}

}  // namespace

OuterUpdate::OuterUpdate(std::vector<at::Tensor> weights, Communicator& replicas, at::Device device,
                         const OuterRule& rule)
    : weights_(std::move(weights)), replicas_(replicas), device_(device), rule_(rule) {
  const at::NoGradGuard no_grad;
  const MemoryScope memory(MemoryCategory::kOptimizer);
  for (int64_t end = 0; const at::Tensor& weight : weights_) {
    offsets_.push_back(end);
    end += weight.numel();
  }
  outer_ = gathered();
  momentum_ = at::zeros_like(outer_);
  if (rule_.keeps_pending) pending_ = at::zeros_like(outer_);
}

at::Tensor OuterUpdate::gathered() const {
  const int64_t elements = offsets_.back() + weights_.back().numel();
  at::Tensor all = at::empty({elements}, at::TensorOptions(type_of(weights_)).device(weights_.at(0).device()));
  for (size_t i = 0; i < weights_.size(); ++i) part(all, i).copy_(weights_[i]);
  return all;
}

void OuterUpdate::start() {
  const at::NoGradGuard no_grad;
  const MemoryScope memory(MemoryCategory::kBuffers);
  const at::Tensor movement = gathered().neg_().add_(outer_);
  work_ = replicas_.all_reduce_async(movement.to(device_), ReduceOp::kAvg);
}

void OuterUpdate::settle() {
  if (work_ && rule_.keeps_pending) pending_.copy_(std::exchange(work_, nullptr)->wait());
}

void OuterUpdate::update() {
  const at::NoGradGuard no_grad;
  const MemoryScope memory(MemoryCategory::kBuffers);
  const at::Tensor gradient = work_ ? std::exchange(work_, nullptr)->wait().to(outer_.device()) : pending_;
  momentum_.mul_(rule_.momentum).add_(gradient);
  // In place: the gradient is not needed again, and these tensors are as large as the model.
  const at::Tensor direction = rule_.nesterov ? gradient.add_(momentum_, rule_.momentum) : momentum_;
  outer_.sub_(direction, rule_.lr);
  if (pending_.defined()) pending_.zero_();
  if (rule_.alpha == 1) return;
  for (size_t i = 0; i < weights_.size(); ++i) {
    const at::Tensor kept = rule_.alpha == 0 ? at::Tensor() : weights_[i].to(outer_.scalar_type()) * rule_.alpha;
    weights_[i].copy_(kept.defined() ? kept.add_(outer(i), 1 - rule_.alpha) : outer(i));
  }
}

}  // namespace ranklab
