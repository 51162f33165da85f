#include "core/runtime/pipeline_schedule.h"

#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/base/injected_bug.h"
#include "core/comm/event_now.h"
#include "core/parallel/deferred_grads.h"
#include "core/parallel/interleave.h"
#include "core/runtime/record/module_tracer.h"
#include "core/runtime/record/trace_span.h"
#include "core/runtime/replayed_pass.h"
#include "core/runtime/stage_messages.h"
#include "core/sim/aten.h"
#include "core/sim/type_watch.h"

namespace ranklab {
namespace {

int64_t count_targets(const at::Tensor& targets_BS) { return targets_BS.ne(-100).sum().item<int64_t>(); }

// Runs one rank's actions of a schedule.
class ActionRunner {
 public:
  struct Options {
    double loss_scale = 1;
    double scale = 1;  // factor that multiplies the loss; includes that of the loss scaler
    StageResult result = StageResult::kLoss;
    ReplayedPass* replayed = nullptr;  // if not null, runs the passes; only for a rank that has the whole model
  };
  // `whole`: the training schedule, which defines the model's stages; `schedule` may contain only its forwards.
  ActionRunner(StepContext& c, const Schedule& whole, const Schedule& schedule, const std::vector<Batch>& batches,
               BoundaryTensor boundary, const Options& options)
      : c_(c),
        schedule_(schedule),
        rank_(c.ctx.coordinate(Axis::kPp)),
        stages_(whole.stages_of(rank_)),
        batches_(batches),
        options_(options),
        messages_(c.ctx.comm(Axis::kPp), schedule, std::move(boundary)) {}

  void run() {
    const std::vector<Action>& actions = schedule_.ranks[static_cast<size_t>(rank_)];
    for (size_t i = 0; i < actions.size(); ++i) {
      messages_.prepare(i);
      const Action& a = actions[i];
      if (options_.replayed != nullptr) {
        if (a.has_input_grad()) run_replayed(a.backward_microbatch());
        continue;
      }
      if (a.kind == ActionKind::kFBW && c_.plan.config.overlap_moe) {
        run_pair(a);
        continue;
      }
      if (a.has_forward()) run_forward(a.stage, a.microbatch);
      if (a.has_input_grad()) run_backward(a.backward_stage(), a.backward_microbatch(), a.has_weight_grad());
      if (a.kind == ActionKind::kW) run_weight_grad(a.stage, a.microbatch);
    }
    c_.ctx.tracer().set_microbatch(-1);
    messages_.finish();
  }

  // Read only at the end: reading it earlier would synchronize with the device.
  double loss_sum() const {
    const NoCostScope free;
    double sum = 0;
    for (const at::Tensor& loss : losses_) sum += loss.item<double>();
    return sum;
  }
  const at::Tensor& result() const { return result_; }  // of the last microbatch, on the rank of the last stage

 private:
  // A microbatch in a stage, between its F and its W.
  struct Flight {
    at::Tensor input, output;
    WeightGradQueue weights;
  };

  // The span of an action on the timeline; an interleaved piece's span is closed while the piece waits for its turn.
  class Span {
   public:
    Span(ActionRunner& runner, const char* name, int stage, int microbatch)
        : runner_(runner), name_(name), stage_(stage), microbatch_(microbatch), slot_(runner.spans_[runner.piece_]) {
      slot_ = this;
      open();
    }
    ~Span() {
      close();
      slot_ = nullptr;
    }
    void open() {
      runner_.c_.ctx.tracer().set_microbatch(microbatch_);
      span_.emplace(runner_.c_.ctx, EventKind::kCompute, name_, runner_.traced(stage_));
      if (runner_.c_.modules != nullptr) runner_.c_.modules->resume(modules_);
    }
    void close() {
      if (runner_.c_.modules != nullptr && span_) runner_.c_.modules->pause();
      span_.reset();
    }

   private:
    ActionRunner& runner_;
    const char* name_;
    int stage_, microbatch_;
    Span*& slot_;
    std::optional<TraceSpan> span_;
    ModuleTracer::Stack modules_;
  };

  // Interleaves a forward and a backward of different microbatches: each runs while the other's tokens are being sent.
  void run_pair(const Action& a) {
    const InterleaveHooks hooks{.resumed =
                                    [this](int piece) {
                                      piece_ = static_cast<size_t>(piece);
                                      if (spans_[piece_] != nullptr) spans_[piece_]->open();
                                    },
                                .suspended =
                                    [this](int piece) {
                                      if (Span* span = spans_[static_cast<size_t>(piece)]) span->close();
                                      piece_ = 0;
                                    }};
    interleave([&] { run_forward(a.stage, a.microbatch); },
               [&] { run_backward(a.backward_stage(), a.backward_microbatch(), a.has_weight_grad()); }, hooks);
  }

  // Runs a microbatch's forward and weight gradients together with its backward.
  void run_replayed(int microbatch) {
    const Batch& batch = batches_[static_cast<size_t>(microbatch)];
    losses_.push_back(options_.replayed->run(batch, loss_scale_of(microbatch), microbatch));
  }

  double loss_scale_of(int microbatch) const {
    if (!injected(InjectedBug::kMeanOfMeans)) return options_.loss_scale;
    const int64_t tokens = std::max<int64_t>(count_targets(batches_[static_cast<size_t>(microbatch)].targets_BS), 1);
    return options_.scale / static_cast<double>(tokens * c_.plan.microbatches_of(c_.step) * c_.plan.dp());
  }

  int local(int stage) const {
    return static_cast<int>(std::find(stages_.begin(), stages_.end(), stage) - stages_.begin());
  }

  void run_forward(int stage, int microbatch) {
    at::Tensor input;
    if (!schedule_.is_first(stage)) {
      input = messages_.take_activation(stage, microbatch);
      if (at::GradMode::is_enabled()) input = input.detach().set_requires_grad(true);
      type_boundary(input, c_.plan.sequence_parallel);
    }
    at::Tensor output;
    begin_observed_pass();
    {
      const Span span(*this, "F", stage, microbatch);
      output = c_.model.forward_stage(local(stage), input, batches_[static_cast<size_t>(microbatch)], options_.result);
    }
    if (!schedule_.is_last(stage)) {
      messages_.give_activation(stage, microbatch, output.detach());
    } else if (options_.result == StageResult::kLoss) {
      losses_.push_back(output.detach());
    } else {
      result_ = output;
    }
    if (!at::GradMode::is_enabled()) return;
    flights_[{stage, microbatch}] = {input, output, {}};
    count_flights();
  }

  void run_backward(int stage, int microbatch, bool whole) {
    Flight& flight = flights_.at({stage, microbatch});
    const bool is_last = schedule_.is_last(stage);
    const at::Tensor grad = is_last ? at::Tensor() : messages_.take_gradient(stage, microbatch);
    if (!is_last) type_boundary(grad, c_.plan.sequence_parallel);
    begin_observed_pass();
    c_.optimizer.begin_pass({.stage = local(stage), .microbatch = microbatch, .completes = whole});
    {
      const Span span(*this, whole ? "BW" : "B", stage, microbatch);
      std::optional<DeferWeightGrads> defer;
      if (!whole) defer.emplace(flight.weights);
      const at::Tensor root = is_last ? flight.output * loss_scale_of(microbatch) : flight.output;
      torch::autograd::backward({root}, {grad});
    }
    if (!schedule_.is_first(stage)) messages_.give_gradient(stage, microbatch, flight.input.grad());
    c_.optimizer.end_pass();
    flight.input.reset();
    flight.output.reset();
    if (whole) land(stage, microbatch);
  }

  void run_weight_grad(int stage, int microbatch) {
    begin_observed_pass();
    {
      // A pass that a plan repeats takes its time when it begins (core/plan/replay.h).
      const Span span(*this, "W", stage, microbatch);
      c_.optimizer.begin_pass({.stage = local(stage), .microbatch = microbatch, .completes = true});
      flights_.at({stage, microbatch}).weights.run();
    }
    c_.optimizer.end_pass();
    land(stage, microbatch);
  }

  void begin_observed_pass() {
    if (c_.ctx.op_observer() != nullptr) c_.ctx.op_observer()->begin_pass();
  }

  void land(int stage, int microbatch) {
    flights_.erase({stage, microbatch});
    count_flights();
  }

  bool is_pipeline() const { return schedule_.num_stages() > 1; }
  int traced(int stage) const { return is_pipeline() ? stage : -1; }

  // Counter on the timeline: activations that this rank holds, in stages.
  void count_flights() {
    if (!is_pipeline() || !c_.ctx.tracer().enabled()) return;
    Event event = event_now(c_.ctx, EventKind::kCounter, "activations held");
    event.value = static_cast<double>(flights_.size());
    c_.ctx.tracer().record(event);
  }

  StepContext& c_;
  const Schedule& schedule_;
  int rank_;
  std::vector<int> stages_;
  const std::vector<Batch>& batches_;
  Options options_;
  StageMessages messages_;
  std::map<std::pair<int, int>, Flight> flights_;  // by stage and microbatch
  std::array<Span*, 2> spans_ = {};                // the open span of each of two interleaved pieces
  size_t piece_ = 0;                               // the running piece
  std::vector<at::Tensor> losses_;
  at::Tensor result_;
};

class PipelineSchedule : public ScheduleStrategy {
 public:
  explicit PipelineSchedule(const Schedule& schedule)
      : schedule_(schedule),
        validation_(forward_only(schedule, schedule.num_microbatches)),
        single_(forward_only(schedule, 1)) {}

  std::string name() const override { return schedule_.name; }

  StepOutput run_step(StepContext& c) override {
    // While batches grow, there are fewer microbatches than in the plan.
    const Schedule& schedule = c.plan.ramp.grows() ? c.plan.schedule_of(c.step) : schedule_;
    std::vector<Batch> batches = load(c, schedule, [&](int64_t i) { return c.data.train_batch(c.step, i); });
    const LossScaler* scaler = c.optimizer.loss_scaler();
    const double scale = scaler ? scaler->scale() : 1.0;
    const double loss_scale = scale * (1.0 / static_cast<double>(global_tokens(c, batches)));
    for (Batch& batch : batches) batch.balance_scale = scale / static_cast<double>(c.plan.tokens_of(c.step));
    StepOutput output;
    output.tokens = tokens_here(c, schedule, batches);
    c.optimizer.begin_step(schedule.num_microbatches);
    ActionRunner runner(c, schedule, schedule, batches, boundary(c, c.plan.micro_batch_size),
                        {.loss_scale = loss_scale, .scale = scale, .replayed = ReplayedPass::of_step(c, replayed_)});
    runner.run();
    output.loss_sum = runner.loss_sum();
    if (replayed_) replayed_->settle();  // reading the losses has waited for the device
    return output;
  }

  StepOutput run_validation(StepContext& c, int64_t index) override {
    const at::NoGradGuard no_grad;
    const std::vector<Batch> batches =
        load(c, validation_, [&](int64_t i) { return c.data.validation_batch(index, i); });
    StepOutput output;
    output.tokens = tokens_here(c, validation_, batches);
    ActionRunner runner(c, schedule_, validation_, batches, boundary(c, c.plan.micro_batch_size), {});
    runner.run();
    output.loss_sum = runner.loss_sum();
    return output;
  }

  at::Tensor logits(StepContext& c, const Batch& batch) override {
    const at::NoGradGuard no_grad;
    const int64_t sequences = batch.tokens_BS.size(0), seq = batch.tokens_BS.size(1);
    const std::vector<Batch> batches = {batch};
    ActionRunner runner(c, schedule_, single_, batches, boundary(c, sequences, seq, StageResult::kLogits),
                        {.result = StageResult::kLogits});
    runner.run();
    if (c.ctx.size(Axis::kPp) == 1) return runner.result();
    at::Tensor logits = runner.result();
    if (!logits.defined()) {
      const auto options = at::TensorOptions(c.model.registry().dtype()).device(c.ctx.device());
      logits = at::empty({sequences, seq, c.plan.config.model.vocab_size}, options);
    }
    return c.ctx.comm(Axis::kPp).broadcast(logits, schedule_.rank(schedule_.chain_length - 1));
  }

 private:
  static BoundaryTensor boundary(StepContext& c, int64_t sequences) {
    return boundary(c, sequences, c.plan.config.model.seq_length, StageResult::kLoss);
  }
  static BoundaryTensor boundary(StepContext& c, int64_t sequences, int64_t tokens, StageResult result) {
    BoundaryTensor boundary{{}, at::TensorOptions(c.model.registry().dtype()).device(c.ctx.device())};
    for (int part = 0; part < c.plan.schedule.chain_length - 1; ++part)
      boundary.shapes.push_back(c.model.boundary_shape(part, sequences, tokens, result));
    return boundary;
  }

  static bool holds(StepContext& c, const Schedule& schedule, bool (Schedule::*end)(int) const) {
    const std::vector<int> stages = schedule.stages_of(c.ctx.coordinate(Axis::kPp));
    return std::any_of(stages.begin(), stages.end(), [&](int stage) { return (schedule.*end)(stage); });
  }

  static bool holds_mtp(StepContext& c, const Schedule& schedule) {
    const std::vector<int> stages = schedule.stages_of(c.ctx.coordinate(Axis::kPp));
    return std::any_of(stages.begin(), stages.end(),
                       [&](int stage) { return schedule.part(stage) == c.plan.mtp_stage; });
  }

  static void check_documents(StepContext& c, const Batch& batch) {
    const bool others_know = c.data.marks_documents() || c.ctx.size(Axis::kPp) == 1;
    RANKLAB_CHECK(batch.documents == nullptr || others_know, ErrorKind::kInvalidArgument, .where = "data",
                  .what = "a batch has documents of which stages in the middle of the pipeline would not know",
                  .got = "Batch::documents, and RankData::marks_documents() is false", .want = "true",
                  .fix = "override it in your RankData");
  }

  // Batches are loaded where tokens, targets or documents are needed; elsewhere dropout still needs the samples'
  // indices.
  template <typename Load>
  static std::vector<Batch> load(StepContext& c, const Schedule& schedule, const Load& load_batch) {
    const NoCostScope free;
    const bool asks = holds(c, schedule, &Schedule::is_first) || holds(c, schedule, &Schedule::is_last) ||
                      holds_mtp(c, schedule) || c.data.marks_documents();
    std::vector<Batch> batches;
    for (int64_t i = 0; i < schedule.num_microbatches; ++i) {
      if (asks) {
        batches.push_back(load_batch(i));
        check_documents(c, batches.back());
        type_batch(batches.back());
        continue;
      }
      const int64_t before = c.ctx.coordinate(Axis::kDp) * schedule.num_microbatches + i;
      batches.push_back(
          {.tokens_BS = {}, .targets_BS = {}, .first_sample = before * c.plan.micro_batch_size, .step = c.step});
    }
    return batches;
  }

  // Ranks of one tp and cp group load the same samples; stages process different microbatches at the same time.
  static void type_batch(const Batch& batch) {
    TypeWatch* watch = type_watch_of_thread;
    if (watch == nullptr) return;
    for (const at::Tensor& tensor : {batch.tokens_BS, batch.targets_BS})
      if (tensor.defined()) watch->is_same_over(tensor, {Axis::kTp, Axis::kCp});
  }

  static int64_t local_tokens(StepContext& c, const Batch& batch) {
    if (c.data.global_tokens_per_batch()) return batch.targets_BS.numel();
    const NoCostScope free;
    return count_targets(batch.targets_BS);
  }

  // Tokens of the microbatches whose loss this rank computes.
  static int64_t tokens_here(StepContext& c, const Schedule& schedule, const std::vector<Batch>& batches) {
    int64_t tokens = 0;
    for (const int stage : schedule.stages_of(c.ctx.coordinate(Axis::kPp))) {
      for (int i = 0; i < schedule.num_microbatches; ++i) {
        if (schedule.is_last(stage) && schedule.passes(stage, i))
          tokens += local_tokens(c, batches[static_cast<size_t>(i)]);
      }
    }
    return tokens;
  }

  // Losses are divided by the tokens of the whole global batch instead of being averaged per rank, so ranks with fewer
  // tokens weigh less. All data-parallel peers of a last stage are last stages, too, and see all of their microbatches.
  int64_t global_tokens(StepContext& c, const std::vector<Batch>& batches) const {
    if (const auto known = c.data.global_tokens_per_batch())
      return c.plan.ramp.grows() ? *known / c.plan.ramp.whole * c.plan.sequences_of(c.step) : *known;
    if (!holds(c, schedule_, &Schedule::is_last)) return 1;  // no loss here
    int64_t local = 0;
    for (const Batch& batch : batches) local += local_tokens(c, batch);
    const at::Tensor count = at::scalar_tensor(local, at::TensorOptions(at::kLong).device(c.ctx.control_device()));
    const int64_t total = c.ctx.comm(Axis::kDp).all_reduce(count).item<int64_t>();
    RANKLAB_CHECK(total > 0, ErrorKind::kInvalidArgument, .where = "step " + std::to_string(c.step),
                  .what = "no token of the global batch has a target", .got = "0",
                  .want = "at least one target that is not -100");
    return total;
  }

  Schedule schedule_, validation_, single_;
  std::unique_ptr<ReplayedPass> replayed_;
};

}  // namespace

std::unique_ptr<ScheduleStrategy> make_pipeline_schedule(const Schedule& schedule) {
  return std::make_unique<PipelineSchedule>(schedule);
}

}  // namespace ranklab
