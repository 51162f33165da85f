#include "core/parallel/tensor/shared_grads.h"

#include <algorithm>

#include "core/base/injected_bug.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

constexpr int kTag = 1 << 30;  // above the tags of the schedule's messages

bool is_forgotten(const Parameter& parameter) {
  const bool embedding = parameter.unit.place == ModelUnit::Place::kFirst;
  return injected(embedding ? InjectedBug::kTiedEmbeddingUnsynced : InjectedBug::kDualPipeUnmerged);
}

}  // namespace

SharedGrads::SharedGrads(const std::vector<Parameter*>& parameters, Communicator& pipeline) : pipeline_(pipeline) {
  for (Parameter* parameter : parameters) {
    if (parameter->pipeline_ranks.size() > 1 && !is_forgotten(*parameter))
      shared_[parameter->pipeline_ranks].push_back(parameter);
  }
  for (auto& [holders, list] : shared_) {
    std::sort(list.begin(), list.end(), [](const Parameter* a, const Parameter* b) { return a->name < b->name; });
  }
}

void SharedGrads::sum() {
  const at::NoGradGuard no_grad;
  for (const auto& [holders, parameters] : shared_) sum(holders, parameters);
}

void SharedGrads::sum(const Holders& holders, const std::vector<Parameter*>& parameters) {
  const MemoryScope memory(MemoryCategory::kBuffers);
  const NoCostScope no_cost;  // copies into and out of the message
  std::vector<at::Tensor> flat;
  for (const Parameter* parameter : parameters) flat.push_back(parameter->data.grad().reshape({-1}));
  const at::Tensor mine = at::cat(flat);
  std::vector<at::Tensor> parts;
  std::vector<WorkPtr> works;
  for (const int holder : holders) {
    if (holder == pipeline_.rank()) {
      parts.push_back(mine);
      continue;
    }
    parts.push_back(at::empty_like(mine));
    works.push_back(pipeline_.send_async(mine, holder, kTag));
    works.push_back(pipeline_.recv_async(parts.back(), holder, kTag));
  }
  for (const WorkPtr& work : works) work->wait();
  at::Tensor total = parts[0].clone();
  for (size_t i = 1; i < parts.size(); ++i) total.add_(parts[i]);
  int64_t offset = 0;
  for (const Parameter* parameter : parameters) {
    at::Tensor grad = parameter->data.grad();
    grad.copy_(total.narrow(0, offset, grad.numel()).view(grad.sizes()));
    offset += grad.numel();
    if (TypeWatch* watch = type_watch_of_thread) watch->summed_over_copies(parameter->name);
  }
}

}  // namespace ranklab
