#include "lessons/17_which_copies_drift/drifting_run.h"

#include <span>

#include "backends/cpu_sim/thread_world.h"
#include "core/base/checksum.h"
#include "core/runtime/before_step.h"
#include "core/runtime/engine.h"
#include "core/sim/aten.h"
#include "core/sim/unseen_scope.h"

namespace ranklab::lesson {
namespace {

TrainConfig config_of(const std::string& bug, const ParallelDims& dims, int steps) {
  TrainConfig c;
  c.parallel = dims;
  c.model.num_layers = 2;
  c.model.hidden_size = 16;
  c.model.ffn_hidden_size = 32;
  c.model.num_attention_heads = 2;
  c.model.seq_length = 8;
  c.model.vocab_size = 256;
  c.global_batch_size = 8;
  c.train_iters = steps;
  c.lr = 3e-3;
  c.lr_decay = LrDecay::kConstant;
  c.lr_warmup_iters = 0;
  c.mock_data = true;
  c.trace = false;
  c.eval_interval = 0;
  c.sample_tokens = 0;
  c.inject = bug;
  return c;
}

RankHashes hashes_of(StepContext& context) {
  const UnseenScope unseen;
  RankHashes hashes{.tp = context.ctx.coordinate(Axis::kTp),
                    .dp = context.ctx.coordinate(Axis::kDp),
                    .pp = context.ctx.coordinate(Axis::kPp),
                    .whole = 0,
                    .split = 0};
  for (const Parameter* parameter : context.model.registry().parameters()) {
    unsigned long long& hash = parameter->partition.replicated() ? hashes.whole : hashes.split;
    const at::Tensor values = parameter->data.detach().contiguous();
    hash = 31 * hash + xxh3(std::span(static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()));
  }
  return hashes;
}

class Losses final : public Hook {
 public:
  explicit Losses(std::vector<double>& losses) : losses_(losses) {}
  void on_step_end(const StepMetrics& metrics) override { losses_.push_back(metrics.loss); }

 private:
  std::vector<double>& losses_;
};

}  // namespace

DriftingRun drifting_run(const std::string& bug, ParallelDims dims, int steps) {
  const RunPlan plan = resolve(config_of(bug, dims, steps));
  const int ranks = plan.mesh.world_size();
  DriftingRun run;
  run.steps.assign(static_cast<size_t>(steps), std::vector<RankHashes>(static_cast<size_t>(ranks)));
  RuntimeComponents parts = default_components(make_thread_world({.size = ranks}), plan);
  parts.schedule_selector = before_each_step(parts.schedule_selector, [&](StepContext& context) {
    run.steps[static_cast<size_t>(context.step)][static_cast<size_t>(context.ctx.global_rank())] = hashes_of(context);
  });
  RuntimeEngine engine(parts, plan);
  engine.add_hook(std::make_shared<Losses>(run.losses));
  engine.fit();
  return run;
}

}  // namespace ranklab::lesson
