#include "core/parity/watch.h"

#include <utility>

#include "core/parity/rank_recorder.h"
#include "core/parity/watch_layer.h"
#include "core/parity/watch_sites.h"
#include "core/runtime/sentinels/family.h"
#include "core/sim/unseen_scope.h"

namespace ranklab {
namespace {

class ParityWatch final : public SentinelFamily, public ModuleHook {
 public:
  ParityWatch(SentinelContext& context, RankTable& table, std::shared_ptr<ModelProvider> provider)
      : context_(context),
        mesh_(context.plan.mesh),
        sites_(context.model, context.world, context.ctx.control_device(), table),
        layer_(context, std::move(provider)),
        recorder_(context.plan, context.ctx.global_rank(), 0) {
    recorder_.set_filter([this](const TensorKey& key) { return takes(key); });
    recorder_.start(context.ctx, context.model, &context.optimizer);
  }

  ModuleHook* module_hook() override { return this; }
  UpdateWatch* update_watch() override { return &recorder_; }
  BatchWatch* batch_watch() override { return &layer_; }
  void begin(int64_t step) override {
    sites_.choose(step, count_);
    layer_.choose(step, count_);
    ++count_;
    recorder_.begin_step();
  }

  void before_forward(const std::string& path, ModulePass pass, const at::Tensor& input) override {
    layer_.keep_weights(path, pass);
    recorder_.before_forward(path, pass, input);
  }
  void after_forward(const std::string& path, ModulePass pass, const at::Tensor& output) override {
    recorder_.after_forward(path, pass, output);
  }
  void before_backward(const std::string& path, const at::Tensor& grad_output) override {
    recorder_.before_backward(path, grad_output);
  }
  void after_backward(const std::string& path, const at::Tensor& grad_input) override {
    recorder_.after_backward(path, grad_input);
  }
  void residual_stream(const std::string& path, ModulePass pass, const at::Tensor& sum) override {
    recorder_.residual_stream(path, pass, sum);
  }

  bool reads_parameters() const override { return true; }
  void fill(const SentinelStep& step, RankTable& table) override {
    const UnseenScope unseen;
    recorder_.end_step();
    ParityRecord mine;
    recorder_.hand_over(mine);
    sites_.fill(mine.tensors, table);
    const double scale = step.output->loss_scale > 0 ? step.output->loss_scale : 1;
    // A step is skipped if a gradient is beyond fp16's range. A rank's summand may be beyond it even if the sum is not,
    // so the layer is not judged in such steps.
    verdict_ =
        step.metrics->skipped
            ? LayerVerdict{}
            : layer_.judge(mine.tensors, scale / static_cast<double>(context_.plan.tokens_of(step.metrics->step)));
  }

  void report(const SentinelStep&, const RankTable& table, SentinelReport& out) override {
    const std::vector<CopiesApart> apart = sites_.apart(table, mesh_);
    out.add("parity_copies", static_cast<double>(apart.size()), {}, apart.empty() ? "" : apart.front().text());
    out.add("parity_layer", verdict_.over, {}, verdict_.text);
  }

 private:
  bool takes(const TensorKey& key) const {
    const bool activation =
        (key.phase == ParityPhase::kForward || key.phase == ParityPhase::kBackward) && key.kind != "grad";
    if (activation && context_.ctx.tracer().microbatch() != layer_.microbatch()) return false;
    return sites_.takes(key) || layer_.takes(key);
  }

  SentinelContext& context_;
  ParityMesh mesh_;
  WatchSites sites_;
  WatchedLayer layer_;
  ParityRecorder recorder_;
  int64_t count_ = 0;
  LayerVerdict verdict_;
};

}  // namespace

MakeOwnFamily parity_watch(std::shared_ptr<ModelProvider> provider) {
  return [provider = std::move(provider)](SentinelContext& context, RankTable& table) {
    return std::make_unique<ParityWatch>(context, table, provider);
  };
}

RuntimeComponents with_parity_watch(RuntimeComponents parts) {
  parts.parity_watch = parity_watch(parts.model_provider);
  return parts;
}

}  // namespace ranklab
