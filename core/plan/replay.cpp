#include "core/plan/replay.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/nn/custom_function.h"
#include "core/plan/pass_memo.h"
#include "core/plan/repeated_passes.h"
#include "core/plan/short_first_step.h"

namespace ranklab {
namespace {

using torch::autograd::variable_list;

enum class Pass { kForward, kWhole, kInput, kWeight };

// One rank's passes of a step, run or repeated.
class Replay {
 public:
  Replay(RankContext& ctx, const RunPlan& plan, int stages)
      : ctx_(ctx),
        repeats_(microbatches_are_alike(plan)),
        whole_(plan.schedule, ctx.coordinate(Axis::kPp), repeats_),
        short_(shortest_schedule(plan.schedule), ctx.coordinate(Axis::kPp), repeats_),
        num_microbatches_(plan.schedule.num_microbatches),
        forwards_(static_cast<size_t>(stages)),
        kept_(static_cast<size_t>(stages)) {}

  void begin_step(int64_t num_microbatches) {
    passes_ = num_microbatches == num_microbatches_ ? &whole_ : &short_;
    std::fill(forwards_.begin(), forwards_.end(), 0);
    memos_.clear();
    shortest_ns_.clear();
    repeated_ = {};
  }
  // What repeated passes held has been given back by now; what is left is of tensors that no probe saw.
  void end_step() {
    for (int64_t& bytes : added_) bytes = -bytes;
    add_to_book(added_);
    added_ = {};
  }
  int64_t runs_of(int64_t num_microbatches) const { return repeats_ ? passes_->count() : num_microbatches; }
  GradPass renumbered(GradPass pass) const {
    if (repeats_) pass.microbatch = passes_->number_of(pass.stage, pass.microbatch);
    return pass;
  }
  const Repeated& repeated() const { return repeated_; }
  const std::vector<int64_t>& kept() const { return kept_; }
  // The shortest time of these stages together: a schedule may run a stage's backward whole and in halves.
  int64_t shortest_ns() const {
    const auto of = [&](Pass pass, int stage) {
      const auto found = shortest_ns_.find({pass, stage});
      return found == shortest_ns_.end() ? int64_t{0} : found->second;
    };
    int64_t sum = 0;
    for (const auto& [key, forward_ns] : shortest_ns_) {
      const auto [pass, stage] = key;
      if (pass != Pass::kForward) continue;
      const int64_t whole = of(Pass::kWhole, stage), halves = of(Pass::kInput, stage) + of(Pass::kWeight, stage);
      sum += forward_ns + (whole > 0 && halves > 0 ? std::min(whole, halves) : whole + halves);
    }
    return sum;
  }

  at::Tensor forward(CausalLm& model, int stage, const at::Tensor& input, const Batch& batch, StageResult result);
  // Called around a backward, or part of one. RETURNS: true when it runs.
  bool begin(const GradPass& pass);
  void end();
  // Called when the backward of a repeated pass reaches the stage.
  void pass_back(const at::Tensor& output_grad) {
    if (kind_ == Pass::kInput) ends_.at(at_).output_grad = output_grad;
    catch_up_time(*probe_, *memo_);
  }

 private:
  struct Ends {
    at::Tensor input, output, output_grad;
  };
  using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;
  struct WeakEnds {
    c10::weak_intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl> input;
    WeakStorage input_storage, output_storage, output_grad;
  };
  struct Held {
    bool input = false, input_storage = false, output_storage = false, output_grad = false;
  };
  struct Output {
    std::vector<int64_t> sizes;
    at::TensorOptions options;
  };
  const PassMemo& count_repeated(Pass pass, int stage) {
    const PassMemo& memo = memos_.at({pass, stage});
    repeated_.traffic.add(memo.traffic);
    repeated_.flops += memo.flops;
    return memo;
  }
  void catch_up_bytes(PassProbe& probe, const PassMemo& memo) {
    const CategoryBytes more = probe.catch_up_bytes(memo);
    for (size_t i = 0; i < added_.size(); ++i) added_[i] += more[i];
  }
  void catch_up_time(PassProbe& probe, const PassMemo& memo) { repeated_.kernel_times.add(probe.catch_up_time(memo)); }
  const PassMemo& remember(Pass pass, int stage, PassMemo memo) {
    int64_t ns = memo.compute_ns;
    for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kEp, Axis::kEtp})
      ns += memo.exposed_ns[static_cast<size_t>(axis)];
    int64_t& shortest = shortest_ns_.try_emplace({pass, stage}, ns).first->second;
    shortest = std::min(shortest, ns);
    return memos_[{pass, stage}] = std::move(memo);
  }
  at::Tensor repeat_forward(int stage, int microbatch, const at::Tensor& input);
  void look_what_is_held();
  static WeakStorage weakly(const at::Tensor& tensor);
  WeakEnds weakly(const Ends& ends) const;
  Ends what_stays(const Ends& ends) const;

  RankContext& ctx_;
  bool repeats_;
  RepeatedPasses whole_, short_;  // of a step with the plan's schedule, and of a short first one
  int num_microbatches_;
  const RepeatedPasses* passes_ = &whole_;
  std::vector<int> forwards_;  // number so far, for each stage
  std::vector<int64_t> kept_;
  std::map<std::pair<Pass, int>, PassMemo> memos_;  // of the latest pass that ran
  std::map<std::pair<Pass, int>, int64_t> shortest_ns_;
  std::map<int, Output> outputs_;  // of each stage
  Repeated repeated_;
  CategoryBytes added_{};                // for repeated passes, in this step
  std::set<std::pair<int, int>> split_;  // stages and microbatches whose B is done
  // Inputs, outputs and the outputs' gradients, by stage and microbatch. What the weight gradients need stays alive
  // between B and W, and may include these tensors: observed in a pass that ran.
  std::map<std::pair<int, int>, Ends> ends_;
  std::optional<WeakEnds> after_input_;
  WeakStorage latest_grad_{c10::intrusive_ptr<c10::StorageImpl>()};  // for an output of a stage that ran
  Held held_ = {};
  // The backward pass in progress.
  std::optional<PassProbe> probe_;
  const PassMemo* memo_ = nullptr;  // null: it runs
  std::pair<int, int> at_ = {};     // stage and microbatch
  Pass kind_ = Pass::kWhole;
};

// Stands for a stage that is not computed: gives autograd something to differentiate.
struct PassedStage : CustomFunction<PassedStage> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& input, at::Tensor output, Replay* replay) {
    ctx->saved_data["replay"] = reinterpret_cast<int64_t>(replay);
    ctx->saved_data["sizes"] = input.sizes().vec();
    ctx->saved_data["type"] = static_cast<int64_t>(input.scalar_type());
    return output;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const NoCostScope free;
    const auto options = at::TensorOptions(static_cast<at::ScalarType>(ctx->saved_data["type"].toInt()));
    const at::Tensor grad = at::empty(ctx->saved_data["sizes"].toIntVector(), options.device(at::kMeta));
    reinterpret_cast<Replay*>(ctx->saved_data["replay"].toInt())->pass_back(grads[0]);
    return {grad, {}, {}};
  }
};

at::Tensor Replay::repeat_forward(int stage, int microbatch, const at::Tensor& input) {
  const NoCostScope free;
  PassProbe probe(ctx_);
  const Output& like = outputs_.at(stage);
  const at::Tensor from = input.defined() ? input : at::empty({}, like.options).set_requires_grad(true);
  at::Tensor output = PassedStage::apply(from, at::empty(like.sizes, like.options), this);
  ends_[{stage, microbatch}] = {input, output, {}};
  const PassMemo& memo = count_repeated(Pass::kForward, stage);
  catch_up_time(probe, memo);
  catch_up_bytes(probe, memo);
  return output;
}

at::Tensor Replay::forward(CausalLm& model, int stage, const at::Tensor& input, const Batch& batch,
                           StageResult result) {
  if (!repeats_ || !at::GradMode::is_enabled()) return model.forward_stage(stage, input, batch, result);
  look_what_is_held();
  const int microbatch = passes_->forward_at(stage, forwards_[static_cast<size_t>(stage)]++);
  if (!passes_->runs(stage, microbatch)) return repeat_forward(stage, microbatch, input);
  PassProbe probe(ctx_);
  at::Tensor output = model.forward_stage(stage, input, batch, result);
  const PassMemo& memo = remember(Pass::kForward, stage, probe.end());
  kept_[static_cast<size_t>(stage)] = together(memo.kept);
  outputs_[stage] = {output.sizes().vec(), output.options().requires_grad(false)};
  ends_[{stage, microbatch}] = {input, output, {}};
  output.register_hook([this](const at::Tensor& grad) { latest_grad_ = weakly(grad); });
  return output;
}

Replay::WeakStorage Replay::weakly(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.storage().getWeakStorageImpl() : WeakStorage(c10::intrusive_ptr<c10::StorageImpl>());
}

Replay::WeakEnds Replay::weakly(const Ends& ends) const {
  return {.input = decltype(WeakEnds::input)(ends.input.getIntrusivePtr()),
          .input_storage = weakly(ends.input),
          .output_storage = weakly(ends.output),
          .output_grad = latest_grad_};
}

// The tensor itself, with its gradient, where it is held; else only its memory.
Replay::Ends Replay::what_stays(const Ends& ends) const {
  const auto memory = [](const at::Tensor& tensor, bool held) {
    return tensor.defined() && held ? tensor.detach() : at::Tensor();
  };
  return {.input = held_.input ? ends.input : memory(ends.input, held_.input_storage),
          .output = memory(ends.output, held_.output_storage),
          .output_grad = memory(ends.output_grad, held_.output_grad)};
}

// The runner releases a stage's ends after its B: what is alive at the next call is held by something else.
void Replay::look_what_is_held() {
  if (!after_input_) return;
  held_ = {.input = !after_input_->input.expired(),
           .input_storage = !after_input_->input_storage.expired(),
           .output_storage = !after_input_->output_storage.expired(),
           .output_grad = !after_input_->output_grad.expired()};
  after_input_.reset();
}

bool Replay::begin(const GradPass& pass) {
  if (!repeats_) return true;
  look_what_is_held();
  at_ = {pass.stage, pass.microbatch};
  kind_ = Pass::kInput;
  if (pass.completes) {
    kind_ = split_.erase(at_) > 0 ? Pass::kWeight : Pass::kWhole;
  } else {
    split_.insert(at_);
  }
  memo_ = passes_->runs(pass.stage, pass.microbatch) ? nullptr : &count_repeated(kind_, pass.stage);
  probe_.emplace(ctx_);
  if (memo_ != nullptr && kind_ == Pass::kWeight) catch_up_time(*probe_, *memo_);
  return memo_ == nullptr;
}

void Replay::end() {
  if (!repeats_) return;
  const bool ran = memo_ == nullptr;
  if (kind_ == Pass::kInput) {
    Ends& ends = ends_.at(at_);
    if (ran) after_input_ = weakly(ends);
    ends = ran ? Ends{} : what_stays(ends);
  } else {
    ends_.erase(at_);
  }
  if (ran) {
    remember(kind_, at_.first, probe_->end());
  } else {
    catch_up_bytes(*probe_, *memo_);
  }
  probe_.reset();
}

class ReplayedModel final : public CausalLm {
 public:
  ReplayedModel(std::unique_ptr<CausalLm> model, RankContext& ctx, const RunPlan& plan)
      : model_(std::move(model)), replay_(ctx, plan, model_->num_stages()) {}
  CausalLm& model() { return *model_; }
  Replay& replay() { return replay_; }
  const Replay& replay() const { return replay_; }

  ParameterRegistry& registry() override { return model_->registry(); }
  at::Tensor loss_sum(const Batch& batch) override { return model_->loss_sum(batch); }
  at::Tensor logits(const Batch& batch) override { return model_->logits(batch); }
  void set_training(bool training) override { model_->set_training(training); }
  ModelReport end_step() override { return model_->end_step(); }
  double take_mtp_loss_sum() override { return model_->take_mtp_loss_sum(); }
  std::vector<std::pair<std::string, at::Tensor>> buffers() override { return model_->buffers(); }
  void set_parameter_gate(ParameterGate* gate) override { model_->set_parameter_gate(gate); }
  int num_stages() const override { return model_->num_stages(); }
  std::vector<Parameter*> stage_parameters(int stage) override { return model_->stage_parameters(stage); }
  std::vector<int64_t> boundary_shape(int64_t sequences, int64_t tokens, StageResult result) const override {
    return model_->boundary_shape(sequences, tokens, result);
  }
  at::Tensor forward_stage(int stage, const at::Tensor& input, const Batch& batch, StageResult result) override {
    return replay_.forward(*model_, stage, input, batch, result);
  }

 private:
  std::unique_ptr<CausalLm> model_;
  Replay replay_;
};

class ReplayedOptimizer final : public RankOptimizer {
 public:
  ReplayedOptimizer(std::unique_ptr<RankOptimizer> optimizer, Replay& replay)
      : optimizer_(std::move(optimizer)), replay_(replay) {}
  std::vector<OwnedState> owned_state() override { return optimizer_->owned_state(); }
  std::vector<GradBucket> grad_buckets() const override { return optimizer_->grad_buckets(); }
  int64_t updates() const override { return optimizer_->updates(); }
  void restored(int64_t updates) override { optimizer_->restored(updates); }
  void begin_step(int64_t num_microbatches) override {
    replay_.begin_step(num_microbatches);
    optimizer_->begin_step(replay_.runs_of(num_microbatches));
  }
  void begin_pass(const GradPass& pass) override {
    runs_ = replay_.begin(pass);
    if (runs_) optimizer_->begin_pass(replay_.renumbered(pass));
  }
  void end_pass() override {
    if (runs_) optimizer_->end_pass();
    replay_.end();
  }
  double finish_step(double lr) override {
    replay_.end_step();
    return optimizer_->finish_step(lr);
  }
  LossScaler* loss_scaler() override { return optimizer_->loss_scaler(); }

 private:
  std::unique_ptr<RankOptimizer> optimizer_;
  Replay& replay_;
  bool runs_ = true;
};

class ReplayedModels final : public ModelProvider {
 public:
  explicit ReplayedModels(std::shared_ptr<ModelProvider> inner) : inner_(std::move(inner)) {}
  std::unique_ptr<CausalLm> build_model(RankContext& ctx, const RunPlan& plan) const override {
    return std::make_unique<ReplayedModel>(inner_->build_model(ctx, plan), ctx, plan);
  }

 private:
  std::shared_ptr<ModelProvider> inner_;
};

class ReplayedOptimizers final : public OptimizerRuntime {
 public:
  explicit ReplayedOptimizers(std::shared_ptr<OptimizerRuntime> inner) : inner_(std::move(inner)) {}
  bool makes_values() const override { return inner_->makes_values(); }
  std::unique_ptr<RankOptimizer> initialize(CausalLm& model, RankContext& ctx, const RunPlan& plan) const override {
    auto& replayed = dynamic_cast<ReplayedModel&>(model);
    return std::make_unique<ReplayedOptimizer>(inner_->initialize(replayed.model(), ctx, plan), replayed.replay());
  }

 private:
  std::shared_ptr<OptimizerRuntime> inner_;
};

}  // namespace

bool microbatches_are_alike(const RunPlan& plan) {
  return plan.config.accumulation == Accumulation::kSequential && !plan.config.overlap_moe;
}

RuntimeComponents with_repeated_passes(RuntimeComponents parts) {
  parts.model_provider = std::make_shared<ReplayedModels>(std::move(parts.model_provider));
  parts.optimizer_runtime = std::make_shared<ReplayedOptimizers>(std::move(parts.optimizer_runtime));
  return parts;
}

const Repeated& repeated(const CausalLm& model) {
  return dynamic_cast<const ReplayedModel&>(model).replay().repeated();
}
const std::vector<int64_t>& kept_by_stages(const CausalLm& model) {
  return dynamic_cast<const ReplayedModel&>(model).replay().kept();
}
int64_t shortest_passes_ns(const CausalLm& model) {
  return dynamic_cast<const ReplayedModel&>(model).replay().shortest_ns();
}

}  // namespace ranklab
