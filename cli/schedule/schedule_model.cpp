#include "cli/schedule/schedule_model.h"

#include "cli/common/command_line.h"
#include "cli/training_module.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/config/pipeline_layout.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

TrainConfig config_of(const ScheduleModel& model) {
  constexpr int64_t kMostSequences = 1 << 30;
  RANKLAB_CHECK(model.micro_batch_size > 0 && model.micro_batch_size <= kMostSequences, ErrorKind::kInvalidArgument,
                .where = "--micro-batch-size", .what = "the value is out of range",
                .got = std::to_string(model.micro_batch_size), .want = "1 to " + std::to_string(kMostSequences),
                .fix = "pass such a value, or leave it out");
  TrainConfig config;
  config.preset = model.name();
  config.model = model_preset(config.preset);
  if (model.seq_length != 0) config.model.seq_length = model.seq_length;
  if (model.num_layers != 0) config.model.num_layers = model.num_layers;
  validate(config.model, model.tp, model.tp > 1);
  return config;
}

// A plan on tp x pp ranks, with one stage per pipeline rank.
RunPlan plan_of(const ScheduleModel& model, int pp) {
  TrainConfig config = config_of(model);
  config.parallel = {.world = model.tp * pp, .tp = model.tp, .pp = pp};
  config.sequence_parallel = model.tp > 1;
  config.hardware = model.hardware;
  config.bf16 = model.bf16;
  config.micro_batch_size = model.micro_batch_size;
  config.global_batch_size = model.micro_batch_size * pp;
  config.mock_data = true;
  return resolve(config);
}

}  // namespace

void add_model_options(CommandLine& app, ScheduleModel& model) {
  app.add_option("--preset", model.preset, "take the costs of each stage from this model (microseconds)")
      ->type_name("NAME");
  app.add_option("--hardware", model.hardware, "with --preset: hardware profile")
      ->type_name("NAME")
      ->capture_default_str();
  app.add_option("--tp,--tensor-model-parallel-size", model.tp, "with --preset: tensor-parallel size")->type_name("N");
  app.add_option("--mbs,--micro-batch-size", model.micro_batch_size,
                 "with --preset: sequences per microbatch (default 1)")
      ->type_name("N");
  app.add_option("--seq-length", model.seq_length, "with --preset: tokens per sequence (default: the preset's)")
      ->type_name("N");
  app.add_option("--num-layers", model.num_layers, "with --preset: number of layers (default: the preset's)")
      ->type_name("N");
  app.add_flag("--bf16", model.bf16, "with --preset: parameters and messages in bf16 (default: fp32)");
}

int64_t message_bytes(const ScheduleModel& model) { return training_functions().boundary_bytes(plan_of(model, 1)); }

std::string message_text(const ScheduleModel& model) {
  const RunPlan plan = plan_of(model, 1);
  return human_bytes(static_cast<double>(training_functions().boundary_bytes(plan))) +
         strprintf(" (%s, %ld x %ld tokens in %s%s; --preset, --mbs, --seq-length, --tp, --bf16)", model.name().c_str(),
                   static_cast<long>(model.micro_batch_size), static_cast<long>(plan.config.model.seq_length),
                   model.dtype(), plan.sequence_parallel ? strprintf(", split over tp %d", model.tp).c_str() : "");
}

PipelineCosts costs_of_model(const ScheduleModel& model, const Schedule& schedule) {
  TrainConfig config = config_of(model);
  config.parallel.pp = schedule.num_ranks();
  const std::vector<int64_t> stage_layers = resolve_stage_layers(config, schedule);
  RunPlan plan = plan_of(model, schedule.num_ranks());
  plan.schedule = schedule;
  plan.stage_layers = stage_layers;
  return training_functions().recorded_costs(plan);
}

}  // namespace ranklab
