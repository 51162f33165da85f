// One rank's part of a ParityRecord: observes the rank's modules, its gradients before and after their reduction, and
// its optimizer. Its own work is not charged to any clock or memory book. Thread rule: its rank's thread, until the run
// has ended.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/nn/split_products.h"
#include "core/parity/parity_record.h"
#include "core/runtime/components.h"
#include "core/runtime/sentinels/watched_data.h"

namespace ranklab {

class ParityRecorder final : public ModuleHook, public BatchWatch, public UpdateWatch {
 public:
  ParityRecorder(const RunPlan& plan, int rank, uint64_t perturb, SumOrder order = {})
      : plan_(plan), rank_(rank), perturb_(perturb), perturbs_(perturb > 0), sum_order_(order) {}

  void before_forward(const std::string& path, ModulePass pass, const at::Tensor& input) override;
  void after_forward(const std::string& path, ModulePass pass, const at::Tensor& output) override;
  void before_backward(const std::string& path, const at::Tensor& grad_output) override;
  void after_backward(const std::string& path, const at::Tensor& grad_input) override;
  void residual_stream(const std::string& path, ModulePass pass, const at::Tensor& sum) override;
  void loaded(const Batch& batch, int64_t wait_ns) override;
  // `optimizer`: null if gradients and states are not to be recorded.
  void start(RankContext& ctx, CausalLm& model, RankOptimizer* optimizer);
  // Keeps only the tensors that `wanted` accepts, and no gradients from before their reduction. Without a filter
  // everything is kept.
  void set_filter(std::function<bool(const TensorKey&)> wanted) { wanted_ = std::move(wanted); }
  void begin_step();
  void end_step();
  void before_reduction(const Parameter& parameter, const at::Tensor& sum) override;
  void before_update(const UpdateView& update) override;
  void after_update(const UpdateView&) override {}

  const std::vector<BatchWatch*>& batch_watches() const { return watches_; }
  const std::function<int64_t()>& no_clock() const { return no_clock_; }
  void hand_over(ParityRecord& record);

 private:
  void keep(TensorPieces& into, TensorKey key, GlobalSlice slice, const at::Tensor& value);
  void keep(ParityPhase phase, const std::string& name, const std::string& kind, GlobalSlice slice,
            const at::Tensor& value) {
    keep(tensors_, {step_, phase, name, kind}, std::move(slice), value);
  }
  void keep_activation(ParityPhase phase, const std::string& path, const char* kind, const at::Tensor& tensor);
  bool has(const TensorKey& key, const GlobalSlice& slice) const;
  bool wants(const TensorKey& key) const { return records_ && (!wanted_ || wanted_(key)); }
  void perturb_weights();
  bool is_whole(const Parameter& parameter) const;
  void keep_shards_of_weights();

  const RunPlan& plan_;
  int rank_;
  uint64_t perturb_;
  bool perturbs_;  // once, before the first step, after any checkpoint has been loaded
  SumOrder sum_order_;
  std::optional<SplitProducts> split_;  // within a step
  std::function<bool(const TensorKey&)> wanted_;
  std::vector<BatchWatch*> watches_{this};
  std::function<int64_t()> no_clock_ = [] { return int64_t{0}; };
  RankContext* ctx_ = nullptr;
  bool records_ = true;  // of DiLoCo's replicas, the first is compared with the first of the other run
  CausalLm* model_ = nullptr;
  RankOptimizer* optimizer_ = nullptr;
  int64_t step_ = -1;
  int order_ = 0;
  TensorPieces tensors_, local_grads_;
};

class ParityRecorders {
 public:
  ParityRecorders(const RunPlan& plan, uint64_t perturb, SumOrder order);
  ParityRecorder& of(int rank) { return *ranks_.at(static_cast<size_t>(rank)); }
  // Call after the run.
  void hand_over(ParityRecord& record);

 private:
  std::vector<std::unique_ptr<ParityRecorder>> ranks_;
};

// Wraps an optimizer so that each rank's part of it is recorded.
std::shared_ptr<OptimizerRuntime> recorded_optimizer(std::shared_ptr<OptimizerRuntime> inner,
                                                     ParityRecorders& recorders);

}  // namespace ranklab
