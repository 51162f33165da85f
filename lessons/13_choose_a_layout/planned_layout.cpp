#include "lessons/13_choose_a_layout/planned_layout.h"

#include "backends/meta/meta_world.h"
#include "core/base/error.h"
#include "core/plan/measured/framework_memory.h"
#include "core/plan/record_step.h"
#include "core/plan/step_time.h"
#include "core/spec/presets.h"

namespace ranklab::lesson {
namespace {

constexpr const char* kModel = "llama_70b";
constexpr double kShare = 0.9;

TrainConfig config_of(const Problem& problem) {
  TrainConfig c;
  c.preset = kModel;
  c.model = model_preset(kModel);
  c.bf16 = true;
  c.mock_data = true;
  c.efficiency = Efficiency::kMeasured;
  c.parallel = {.world = problem.gpus};
  c.global_batch_size = problem.sequences;
  return c;
}

}  // namespace

Problem problem_of(int gpus, int sequences) {
  const ModelConfig& m = model_preset(kModel);
  const HardwareProfile profile = profile_of(TrainConfig{});
  return {.gpus = gpus,
          .gpus_per_node = profile.gpus_per_node,
          .memory_bytes = static_cast<double>(profile.memory_bytes),
          .sequences = sequences,
          .sequence_length = static_cast<int>(m.seq_length),
          .hidden = static_cast<int>(m.hidden_size),
          .layers = static_cast<int>(m.num_layers),
          .heads = static_cast<int>(m.num_attention_heads),
          .parameters = static_cast<double>(m.parameter_count())};
}

LayoutChoice as_choice(const Layout& l) {
  return {.tp = l.tp,
          .pp = l.pp,
          .zero_stage = l.zero_stage,
          .micro_batch = l.microbatch,
          .recompute = l.recompute ? "full" : "none"};
}

double most_bytes(const Problem& problem) { return kShare * problem.memory_bytes; }

LayoutTime plan_of(const Problem& problem, const LayoutChoice& layout) {
  RANKLAB_CHECK(layout.tp > 0 && layout.pp > 0 && layout.micro_batch > 0, ErrorKind::kInvalidArgument,
                .where = "layout", .what = "sizes count from 1", .got = layout.flags(), .want = "1 or more of each",
                .fix = "set tp, pp and the microbatch");
  TrainConfig config = config_of(problem);
  LayoutChoice whole = layout;
  settle_grad_sync(config, whole);
  whole.apply(config);
  const RunPlan plan = resolve(config);
  const StepRecord record = record_step(plan, make_meta_world);
  const StepTime time = time_of(record);
  LayoutTime out{.step_s = time.total_ns * 1e-9,
                 .compute_s = time.compute_ns * 1e-9,
                 .waiting_s = time.pipeline_idle_ns * 1e-9,
                 .bytes = framework_memory(plan, record).on_device(),
                 .mfu = mfu(plan, time.total_ns)};
  for (const auto& [axis, exposed] : time.exposed_ns) (axis == Axis::kTp ? out.tp_s : out.other_s) += exposed * 1e-9;
  return out;
}

}  // namespace ranklab::lesson
