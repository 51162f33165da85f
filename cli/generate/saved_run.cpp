#include "cli/generate/saved_run.h"

#include "cli/common/model_text.h"
#include "cli/generate/no_training.h"
#include "cli/generate/replica_world.h"
#include "cli/train/gemm.h"
#include "cli/world/adopt_world.h"
#include "cli/world/make_world.h"
#include "core/base/error.h"
#include "core/base/system.h"
#include "core/base/text.h"
#include "core/comm/process_env.h"
#include "core/comm/rank_context.h"
#include "core/nn/initial_values.h"
#include "core/runtime/checkpoint/load_weights.h"
#include "core/runtime/checkpoint/settings.h"
#include "core/runtime/memory/check.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

// For untrained weights, only the cache is held besides them.
void check_weights_fit(RunPlan plan) {
  plan.config.optimizer = OptimizerKind::kSgd;
  plan.config.sgd_momentum = 0;
  plan.config.cuda_graph = false;
  const int64_t weights = fixed_bytes(plan) / 2;  // without gradients
  const int64_t of_gpu = memory_of_ranks(plan.config);
  const int64_t available = of_gpu > 0 ? of_gpu : available_memory_bytes();
  const auto bytes = [](int64_t count) { return human_bytes(static_cast<double>(count)); };
  RANKLAB_CHECK(available == 0 || weights <= available, ErrorKind::kEnvironment, .where = "memory",
                .what = "the weights of all simulated ranks do not fit this machine", .got = bytes(weights),
                .want = "at most the available " + bytes(available), .fix = "use fewer --num-layers");
}

bool is_of_command_line(const std::string& origin) { return origin.starts_with("flag ") || origin == "--set"; }

// The preset that the model was trained from; "" where that is not known, as of an imported one.
std::string preset_of(const SavedModel& saved) {
  if (!saved.checkpoint) return "";
  const auto& config = saved.checkpoint->manifest().config;
  const auto preset = config.find("model.preset");
  return preset == config.end() ? "" : preset->second;
}

// The saved settings come after those of a preset, which would therefore have no effect. It may be named if it is the
// saved model's.
bool names_other_preset(const ConfigOptions& options, const SavedModel& saved) {
  if (!is_of_command_line(options.merged().origins.at("model.preset"))) return false;
  TrainConfig named;
  named.preset = options.config().preset;
  named.model = model_preset(named.preset);
  return named.preset != preset_of(saved) && !other_model_to_run(settings_of(saved.config), named).now.empty();
}

// A run that goes on with the training compares more, by itself.
void check_same_model(const ConfigOptions& options, const SavedModel& saved, const std::string& load, ModelUse use) {
  const TrainConfig config = options.config();
  OtherModel other;
  if (use == ModelUse::kOnlyRuns || config.train_iters == 0)
    other = other_model_to_run(settings_of(saved.config), config);
  if (names_other_preset(options, saved)) {
    const std::string preset = preset_of(saved);
    other.now.insert(other.now.begin(), "--preset " + config.preset);
    other.saved.insert(other.saved.begin(), preset.empty() ? "no --preset" : "--preset " + preset);
  }
  require_same_model(other, load, "leave them out: the settings of a saved model are saved with it");
}

}  // namespace

ReadyRun ready_run(ConfigOptions& options, TrainConfig config, const std::function<void(const RunPlan&)>& check) {
  const ProcessEnv env = read_process_env();
  std::shared_ptr<World> world;
  if (!config.can(Capability::kMakesRanks)) world = make_world(config);
  if (world || env.world_size > 1) adopt_world(config, world ? world->size() : env.world_size, options);
  choose_replica_world(options, config);
  RunPlan plan = options.resolve(std::move(config));
  if (world ? world->has_rank_zero() : env.rank == 0) options.report_idle(plan);
  check(plan);
  if (!world) {
    plan.config.train_iters > 0 ? check_memory(plan, memory_of_ranks(plan.config)) : check_weights_fit(plan);
    world = make_world(plan.config, env);
  }
  choose_gemm(plan, *world);
  return {std::move(plan), std::move(world)};
}

std::string run_model_text(const TrainConfig& config) {
  return config.load.empty() ? model_name(config) : counts_text(count_model(config.model, config.model.seq_length));
}

std::unique_ptr<SavedModel> take_saved_model(ConfigOptions& options, const std::string& load, ModelUse use) {
  if (load.empty()) return nullptr;
  auto saved = std::make_unique<SavedModel>(open_saved_model(load));
  for (const auto& [key, text] : settings_of(saved->config)) options.set(key, text, quote(load));
  if (saved->checkpoint) {
    const auto& config = saved->checkpoint->manifest().config;
    const auto type = config.find("train.params_dtype");
    if (type != config.end()) options.set(type->first, type->second, quote(load));
  }
  check_same_model(options, *saved, load, use);
  return saved;
}

void run_saved_model(const RunPlan& plan, const std::shared_ptr<World>& world, const SavedModel* saved,
                     const std::function<void(StepContext&)>& use) {
  RunPlan own = plan;
  own.config.load.clear();  // only the weights are loaded, by the code below
  const RuntimeComponents parts = default_parts();
  world->run([&](Endpoint& endpoint) {
    RankContext context(endpoint, own.mesh, {.virtual_time = false, .trace = false});
    const std::unique_ptr<CausalLm> model = parts.model_provider->build_model(context, own);
    make_values(model->registry());
    if (saved != nullptr && saved->checkpoint)
      load_weights(*saved->checkpoint, *model, own.config);
    else if (saved != nullptr)
      load_weights(*saved->tensors, *model);
    model->set_training(false);
    NoData data;
    NoOptimizer optimizer;
    const std::unique_ptr<ScheduleStrategy> schedule = parts.schedule_selector->select(own);
    StepContext step{context, own, *model, data, optimizer};
    step.schedule = schedule.get();
    use(step);
  });
}

}  // namespace ranklab
