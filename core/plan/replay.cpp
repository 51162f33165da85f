#include "core/plan/replay.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "core/model/wrapped_model.h"
#include "core/nn/custom_function.h"
#include "core/parallel/interleave.h"
#include "core/plan/pass_script.h"
#include "core/plan/repeated_passes.h"
#include "core/plan/step_time.h"
#include "core/runtime/provide.h"
#include "core/runtime/wrapped_optimizer.h"

namespace ranklab {
namespace {

using Pass = ActionKind;

// Whether buckets of gradients that are freed once they are reduced hold those of several microbatches, whose
// backwards begin (B) before that of an earlier one is complete (W). Which pass allocates or frees one depends on the
// others.
bool microbatches_share_buckets(const RunPlan& plan, const Schedule& schedule) {
  const auto splits = [](const std::vector<Action>& rank) {
    return std::ranges::any_of(rank, [](const Action& a) { return a.kind == ActionKind::kW; });
  };
  return plan.zero().gradients && plan.config.grad_sync == GradSync::kMicrobatch &&
         std::ranges::any_of(schedule.ranks, splits);
}

// One rank's passes of a step, run or repeated.
class Replay {
 public:
  Replay(RankContext& ctx, const RunPlan& plan, int stages, RepeatedCalls calls)
      : ctx_(ctx),
        calls_(calls),
        forwards_(static_cast<size_t>(stages)),
        in_order_(microbatches_in_order(plan)),
        hides_exchanges_(plan.config.overlap_moe),
        report_{.kept_bytes = std::vector<int64_t>(static_cast<size_t>(stages))} {
    if (!microbatches_are_alike(plan)) return;
    const auto add = [&](const Schedule& schedule) {
      const bool all = passes_share_gathers(plan) || microbatches_share_buckets(plan, schedule) ||
                       (reductions_delay_gathers(plan) && schedule.num_microbatches <= kFewMicrobatches);
      schedules_.try_emplace(schedule.num_microbatches, schedule, ctx.coordinate(Axis::kPp), hides_exchanges_, all);
    };
    add(plan.schedule);
    for (const auto& [num_microbatches, schedule] : plan.ramp_schedules) add(schedule);
  }

  void begin_step(int64_t num_microbatches) {
    const auto known = schedules_.find(num_microbatches);
    passes_ = known == schedules_.end() ? nullptr : &known->second;
    std::fill(forwards_.begin(), forwards_.end(), 0);
    scripts_.clear();
    shortest_ns_.clear();
    report_.repeated = {};
  }
  // By now, what repeated passes held has been released; what is left are tensors that no probe saw.
  void end_step() {
    thread_memory_book()->add(minus({}, added_));
    added_ = {};
    report_.shortest_ns = shortest_ns();
  }
  int64_t runs_of(int64_t num_microbatches) const { return passes_ ? passes_->count() : num_microbatches; }
  GradPass renumbered(GradPass pass) const {
    if (passes_) pass.microbatch = passes_->number_of(pass.stage, pass.microbatch);
    return pass;
  }
  const PassReport& report() const { return report_; }

  at::Tensor forward(CausalLm& model, int stage, const at::Tensor& input, const Batch& batch, StageResult result);
  // Called before and after a backward, or a part of one. RETURNS: true when it is really run.
  bool begin(const GradPass& pass);
  void end();
  // Called when the backward of a repeated pass reaches the stage.
  void pass_back(const at::Tensor& output_grad) {
    if (kind_ == Pass::kB) flights_.at(at_).ends[kOutputGrad] = output_grad;
    player_->play();
  }

 private:
  // The boundary tensors of a stage in one microbatch.
  enum End { kInput, kOutput, kOutputGrad, kEnds };
  using Ends = std::array<at::Tensor, kEnds>;
  using WeakStorage = c10::weak_intrusive_ptr<c10::StorageImpl>;
  struct WeakEnds {
    c10::weak_intrusive_ptr<at::TensorImpl, at::UndefinedTensorImpl> input;
    std::array<WeakStorage, kEnds> memory;
  };
  struct Flight {
    Ends ends;
    std::optional<WeakEnds> after_input;  // set for a pass that ran
    bool split = false;                   // B is done
  };
  struct Held {
    bool input = false;
    std::array<bool, kEnds> memory{};
  };
  struct Output {
    std::vector<int64_t> sizes;
    at::TensorOptions options;
  };
  // Passes of one kind in a stage are alike if they are or are not interleaved with another pass.
  struct PassKind {
    Pass pass;
    int stage;
    bool paired = is_interleaved();

    auto operator<=>(const PassKind&) const = default;
  };
  bool traced() const { return calls_ == RepeatedCalls::kTraced; }
  ScriptPlayer player_of(Pass pass, int stage) {
    const PassScript& script = scripts_.at({pass, stage});
    if (!traced()) report_.repeated.add(script.traffic);
    return ScriptPlayer(ctx_, script, traced());
  }
  void end(ScriptPlayer& player) { added_ = plus(added_, player.end()); }
  const PassScript& remember(Pass pass, int stage, PassScript script) {
    int64_t ns = script.time.compute_ns;
    for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kEp, Axis::kEtp})
      if (!hides_exchanges_) ns += script.time.exposed_ns[static_cast<size_t>(axis)];
    int64_t& shortest = shortest_ns_.try_emplace({pass, stage}, ns).first->second;
    shortest = std::min(shortest, ns);
    return scripts_.insert_or_assign({pass, stage}, std::move(script)).first->second;
  }
  int64_t shortest_ns() const;
  at::Tensor repeat_forward(int stage, int microbatch, const at::Tensor& input);
  static WeakStorage weakly(const at::Tensor& tensor);
  void find_held_tensors();
  bool holds(std::pair<int, int> at, const WeakStorage& memory) const;
  Ends held_at_end(const Ends& ends) const;

  RankContext& ctx_;
  RepeatedCalls calls_;
  std::map<int64_t, RepeatedPasses> schedules_;  // by number of microbatches, which grows with the batch
  const RepeatedPasses* passes_ = nullptr;       // for this step; null: all microbatches run
  std::vector<int> forwards_;                    // number of forwards so far, by stage
  bool in_order_, hides_exchanges_;
  PassReport report_;
  std::map<PassKind, PassScript> scripts_;  // of the latest pass that ran
  std::map<std::pair<Pass, int>, int64_t> shortest_ns_;
  std::map<int, Output> outputs_;  // by stage
  CategoryBytes added_{};          // bytes added for repeated passes in this step
  // By stage and microbatch. What the weight gradients need stays alive between B and W; it may include these tensors,
  // or only their memory, which was observed in a pass that ran.
  std::map<std::pair<int, int>, Flight> flights_;
  std::optional<std::pair<int, int>> to_look_at_;
  WeakStorage latest_grad_{c10::intrusive_ptr<c10::StorageImpl>()};  // for the output of a stage that ran
  std::map<int, Held> held_;                                         // by stage
  // The backward pass in progress.
  std::optional<ScriptRecorder> recorder_;                       // of a pass that is really run
  std::optional<ScriptPlayer> player_;                           // of any other
  std::pair<int, int> at_ = {};                                  // stage and microbatch
  std::vector<c10::intrusive_ptr<c10::StorageImpl>> until_end_;  // memory that a running W keeps alive
  Pass kind_ = Pass::kBW;
};

// Stands for a stage that is not computed, so that autograd has something to differentiate.
struct PassedStage : CustomFunction<PassedStage> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& input, at::Tensor output, Replay* replay) {
    ctx->saved_data["replay"] = reinterpret_cast<int64_t>(replay);
    ctx->saved_data["sizes"] = input.sizes().vec();
    ctx->saved_data["type"] = static_cast<int64_t>(input.scalar_type());
    return output;
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto options = at::TensorOptions(static_cast<at::ScalarType>(ctx->saved_data["type"].toInt()));
    const at::Tensor grad = [&] {
      const NoCostScope free;
      return at::empty(ctx->saved_data["sizes"].toIntVector(), options.device(at::kMeta));
    }();
    reinterpret_cast<Replay*>(ctx->saved_data["replay"].toInt())->pass_back(grads[0]);
    return {grad, {}, {}};
  }
};

// The sum over stages of the shortest time; a schedule may run a stage's backward both whole and in halves.
int64_t Replay::shortest_ns() const {
  const auto of = [&](Pass pass, int stage) {
    const auto found = shortest_ns_.find({pass, stage});
    return found == shortest_ns_.end() ? int64_t{0} : found->second;
  };
  int64_t sum = 0;
  for (int stage = 0; stage < static_cast<int>(forwards_.size()); ++stage) {
    const int64_t whole = of(Pass::kBW, stage), halves = of(Pass::kB, stage) + of(Pass::kW, stage);
    sum += of(Pass::kF, stage) + (whole > 0 && halves > 0 ? std::min(whole, halves) : whole + halves);
  }
  return sum;
}

at::Tensor Replay::repeat_forward(int stage, int microbatch, const at::Tensor& input) {
  ScriptPlayer player = player_of(Pass::kF, stage);
  const at::Tensor output = [&] {
    const NoCostScope free;
    const Output& like = outputs_.at(stage);
    const at::Tensor from = input.defined() ? input : at::empty({}, like.options).set_requires_grad(true);
    return PassedStage::apply(from, at::empty(like.sizes, like.options), this);
  }();
  flights_[{stage, microbatch}].ends = {input, output, {}};
  player.play();
  end(player);
  return output;
}

at::Tensor Replay::forward(CausalLm& model, int stage, const at::Tensor& input, const Batch& batch,
                           StageResult result) {
  if (!at::GradMode::is_enabled() || (!passes_ && !in_order_)) return model.forward_stage(stage, input, batch, result);
  int microbatch = 0;
  if (passes_) {
    find_held_tensors();
    microbatch = passes_->forward_at(stage, forwards_[static_cast<size_t>(stage)]++);
    if (!passes_->runs(stage, microbatch)) return repeat_forward(stage, microbatch, input);
  }
  ScriptRecorder recorder(ctx_);
  at::Tensor output = model.forward_stage(stage, input, batch, result);
  const PassScript& script = remember(Pass::kF, stage, recorder.end());
  int64_t& kept = report_.kept_bytes[static_cast<size_t>(stage)];
  kept = passes_ ? together(script.kept()) : std::max(kept, together(script.kept()));
  if (!passes_) return output;
  outputs_[stage] = {output.sizes().vec(), output.options().requires_grad(false)};
  flights_[{stage, microbatch}].ends = {input, output, {}};
  output.register_hook([this](const at::Tensor& grad) { latest_grad_ = weakly(grad); });
  return output;
}

Replay::WeakStorage Replay::weakly(const at::Tensor& tensor) {
  return tensor.defined() ? tensor.storage().getWeakStorageImpl() : WeakStorage(c10::intrusive_ptr<c10::StorageImpl>());
}

// Keeps the tensor itself, with its gradient, if it is held; otherwise only its memory.
Replay::Ends Replay::held_at_end(const Ends& ends) const {
  Ends stay;
  const auto held = held_.find(at_.first);
  if (held == held_.end()) return stay;
  for (size_t end = 0; end < kEnds; ++end)
    if (ends[end].defined() && held->second.memory[end]) stay[end] = ends[end].detach();
  if (held->second.input) stay[kInput] = ends[kInput];
  return stay;
}

// Whether weight gradients need memory that is still alive. Two consecutive stages of a rank share a tensor, which also
// lives until the backward of the first stage, or for the weight gradients of the second.
bool Replay::holds(std::pair<int, int> at, const WeakStorage& memory) const {
  const auto storage = memory.lock();
  if (!storage) return false;
  size_t known = 1;  // `storage`
  for (const auto& [other, flight] : flights_) {
    if (other == at) continue;
    for (const at::Tensor& end : flight.ends)
      if (end.defined() && end.storage().unsafeGetStorageImpl() == storage.get()) ++known;
    if (!flight.after_input || !held_.contains(other.first)) continue;
    for (size_t end = 0; end < kEnds; ++end)
      if (flight.after_input->memory[end] == memory && held_.at(other.first).memory[end]) return false;
  }
  return storage.use_count() > known;
}

// The runner releases a stage's boundary tensors after its B, so anything still alive at the next call is held by
// something else.
void Replay::find_held_tensors() {
  if (!to_look_at_) return;
  const WeakEnds& after = *flights_.at(*to_look_at_).after_input;
  Held held{.input = !after.input.expired()};
  for (size_t end = 0; end < kEnds; ++end) held.memory[end] = holds(*to_look_at_, after.memory[end]);
  held_[to_look_at_->first] = held;
  to_look_at_.reset();
}

bool Replay::begin(const GradPass& pass) {
  if (!passes_) return true;
  find_held_tensors();
  at_ = {pass.stage, pass.microbatch};
  bool& split = flights_[at_].split;
  kind_ = !pass.completes ? Pass::kB : split ? Pass::kW : Pass::kBW;
  split = !pass.completes;
  const bool runs = passes_->runs(pass.stage, pass.microbatch);
  if (runs) {
    recorder_.emplace(ctx_);
  } else {
    player_.emplace(player_of(kind_, pass.stage));
    if (kind_ == Pass::kW) player_->play();
  }
  // When a tensor shared by two stages is released depends on the order of their passes; here it is always after the
  // pass.
  if (kind_ == Pass::kW && runs)
    for (const WeakStorage& memory : flights_.at(at_).after_input->memory) until_end_.push_back(memory.lock());
  return runs;
}

void Replay::end() {
  if (!passes_) return;
  const bool ran = recorder_.has_value();
  Flight& flight = flights_.at(at_);
  if (kind_ == Pass::kB && ran) {
    flight.after_input = WeakEnds{.input = decltype(WeakEnds::input)(flight.ends[kInput].getIntrusivePtr()),
                                  .memory = {weakly(flight.ends[kInput]), weakly(flight.ends[kOutput]), latest_grad_}};
    to_look_at_ = at_;
    flight.ends = {};
  } else if (kind_ == Pass::kB) {
    flight.ends = held_at_end(flight.ends);
  }
  if (ran) {
    remember(kind_, at_.first, recorder_->end());
    recorder_.reset();
  } else {
    end(*player_);
    player_.reset();
  }
  until_end_.clear();
  if (kind_ != Pass::kB) flights_.erase(at_);
}

class ReplayedModel final : public WrappedModel {
 public:
  ReplayedModel(std::unique_ptr<CausalLm> model, RankContext& ctx, const RunPlan& plan, RepeatedCalls calls)
      : WrappedModel(std::move(model)), replay_(ctx, plan, num_stages(), calls) {}
  Replay& replay() { return replay_; }
  const PassReport& report() const { return replay_.report(); }

  at::Tensor forward_stage(int stage, const at::Tensor& input, const Batch& batch, StageResult result) override {
    return replay_.forward(inner(), stage, input, batch, result);
  }

 private:
  Replay replay_;
};

class ReplayedOptimizer final : public WrappedOptimizer {
 public:
  ReplayedOptimizer(std::unique_ptr<RankOptimizer> optimizer, Replay& replay)
      : WrappedOptimizer(std::move(optimizer)), replay_(replay) {}
  void begin_step(int64_t num_microbatches) override {
    replay_.begin_step(num_microbatches);
    inner().begin_step(replay_.runs_of(num_microbatches));
  }
  void begin_pass(const GradPass& pass) override {
    runs_ = replay_.begin(pass);
    if (runs_) inner().begin_pass(replay_.renumbered(pass));
  }
  void end_pass() override {
    if (runs_) inner().end_pass();
    replay_.end();
  }
  double finish_step(double lr) override {
    replay_.end_step();
    return inner().finish_step(lr);
  }

 private:
  Replay& replay_;
  bool runs_ = true;
};

}  // namespace

bool microbatches_in_order(const RunPlan& plan) { return plan.config.accumulation == Accumulation::kSequential; }
bool microbatches_are_alike(const RunPlan& plan) {
  return microbatches_in_order(plan) && !plan.config.documents.reset_attention_mask;
}

RuntimeComponents with_repeated_passes(RuntimeComponents parts, RepeatedCalls calls) {
  parts.model_provider =
      provide_model([own = std::move(parts.model_provider), calls](RankContext& ctx, const RunPlan& plan) {
        return std::make_unique<ReplayedModel>(own->build_model(ctx, plan), ctx, plan, calls);
      });
  parts.optimizer_runtime = wrap_optimizers(
      std::move(parts.optimizer_runtime),
      [](const OptimizerRuntime& own, CausalLm& model, RankContext& ctx, const RunPlan& plan) {
        auto& replayed = dynamic_cast<ReplayedModel&>(model);
        return std::make_unique<ReplayedOptimizer>(own.initialize(replayed.inner(), ctx, plan), replayed.replay());
      });
  return parts;
}

const PassReport& passes_of(const CausalLm& model) { return dynamic_cast<const ReplayedModel&>(model).report(); }

}  // namespace ranklab
