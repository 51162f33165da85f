#include "cli/train/auto_layout.h"

#include <optional>
#include <utility>
#include <vector>

#include "cli/plan/plan_layouts.h"
#include "cli/world/adopt_world.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/manifest.h"
#include "core/checkpoint/run_folder.h"
#include "core/comm/process_env.h"
#include "core/config/settings/fields.h"

namespace ranklab {
namespace {

constexpr const char* kOrigin = "--layout auto";
constexpr int kPlans = 32;
constexpr double kMemoryShare = 0.9;
// The settings that a layout consists of, in the order in which they are shown.
constexpr const char* kKeys[] = {"parallel.tp",
                                 "parallel.pp",
                                 "parallel.cp",
                                 "parallel.ep",
                                 "parallel.vpp",
                                 "parallel.pipeline_schedule",
                                 "parallel.zero_stage",
                                 "parallel.grad_sync",
                                 "train.micro_batch_size",
                                 "memory.recompute_granularity"};

// The run's configuration with the world size that it will have.
TrainConfig in_its_world(const ConfigOptions& options) {
  const ProcessEnv env = read_process_env();
  TrainConfig config = options.config();
  const bool launched = env.world_size > 1 || !config.can(Capability::kMakesRanks);
  bool names_a_size = false;
  for (const char* key : {"parallel.tp", "parallel.pp", "parallel.cp", "parallel.ep", "parallel.etp", "parallel.dp"})
    names_a_size = names_a_size || options.given(key);
  RANKLAB_CHECK(launched || options.given("parallel.world_size") || !names_a_size, ErrorKind::kInvalidArgument,
                .where = kOrigin, .what = "the world size is not given", .got = "only sizes of axes",
                .want = "--world-size, and the sizes to keep", .fix = "add --world-size N");
  if (launched) adopt_world(config, env.world_size, options);
  return config;
}

void refuse_twice_settled(const ConfigOptions& options) {
  for (const char* key : {"train.num_microbatches", "parallel.grad_sync", "parallel.sharding_strategy",
                          "parallel.use_distributed_optimizer", "parallel.sep"})
    RANKLAB_CHECK(!options.given(key), ErrorKind::kInvalidArgument, .where = kOrigin,
                  .what = "the layout is to be chosen, and this setting fixes a part of it indirectly",
                  .got = find_field(key)->flags.back(), .want = "--mbs, --zero-stage, --cp or --ep for what to keep",
                  .fix = "leave it out");
}

// A microbatch of 0 sequences leaves the size open, as if the flag were absent.
bool is_open(const std::string& key, const ConfigOptions& options) {
  return key == "train.micro_batch_size" && options.config().micro_batch_size == 0;
}

PinnedLayout pinned_by(const ConfigOptions& options, const TrainConfig& c) {
  PinnedLayout pinned;
  const auto pin = [&](const char* key, auto& to, const auto& value) {
    if (options.given(key)) to = value;
  };
  pin("parallel.tp", pinned.tp, c.parallel.tp);
  pin("parallel.pp", pinned.pp, c.parallel.pp);
  pin("parallel.cp", pinned.cp, c.parallel.cp);
  pin("parallel.ep", pinned.ep, c.parallel.ep);
  if (c.parallel.dp > 0) pin("parallel.dp", pinned.dp, c.parallel.dp);  // 0: derived
  pin("parallel.vpp", pinned.virtual_stages, c.virtual_stages);
  pin("parallel.pipeline_schedule", pinned.schedule, c.pipeline_schedule);
  pin("parallel.zero_stage", pinned.zero_stage, c.zero_stage);
  if (c.micro_batch_size > 0) pin("train.micro_batch_size", pinned.micro_batch, c.micro_batch_size);
  pin("memory.recompute_granularity", pinned.recompute, c.recompute_granularity);
  return pinned;
}

std::vector<ConfigSetting> settings_of(const TrainConfig& chosen, const ConfigOptions& options,
                                       const std::string& origin) {
  std::vector<ConfigSetting> settings;
  for (const char* key : kKeys)
    if (!options.given(key) || is_open(key, options)) settings.push_back({key, find_field(key)->get(chosen), origin});
  return settings;
}

struct Saved {
  std::string folder;
  CheckpointManifest manifest;
};

// The newest checkpoint that the run may start from; the run itself checks whether it is intact.
std::optional<Saved> saved_run(const TrainConfig& c) {
  const std::string root = c.load == "auto" ? c.save_dir : c.load;
  if (root.empty()) return std::nullopt;
  std::vector<std::string> folders;
  if (is_checkpoint(root)) folders.push_back(root);
  for (const StepFolder& step : step_folders(root)) folders.push_back(step.path);
  for (const std::string& folder : folders) {
    try {
      return Saved{folder, read_manifest(folder + "/" + kManifestName)};
    } catch (const Error&) {  // damaged; try an older one
    }
  }
  return std::nullopt;
}

// The layout of the checkpoint, if its world has the same size and it agrees with all layout settings that the user
// gave.
std::optional<TrainConfig> kept_layout(const Saved& saved, const TrainConfig& c, const ConfigOptions& options) {
  const auto world = saved.manifest.layout.find("world");
  if (world == saved.manifest.layout.end() || world->second != c.parallel.world) return std::nullopt;
  // If the size of a microbatch is not set, it follows from the number of microbatches, which is not part of a layout.
  const auto microbatches = saved.manifest.config.find("train.num_microbatches");
  if (microbatches != saved.manifest.config.end() && microbatches->second != "0") return std::nullopt;
  TrainConfig kept = c;
  for (const char* key : kKeys) {
    const auto value = saved.manifest.config.find(key);
    if (value == saved.manifest.config.end()) return std::nullopt;
    if (options.given(key) && find_field(key)->get(c) != value->second) return std::nullopt;
    set_config_field(kept, key, value->second);
  }
  const int64_t model_ranks = int64_t{kept.parallel.tp} * kept.parallel.pp * kept.parallel.cp;
  if (c.parallel.dp > 0 && model_ranks * c.parallel.dp != c.parallel.world) return std::nullopt;
  return kept;
}

std::string flags_of(const std::vector<ConfigSetting>& settings) {
  std::string text;
  for (const ConfigSetting& one : settings) text += " " + find_field(one.key)->flags.back() + " " + one.text;
  return text.empty() ? " (all of it was given)" : text;
}

std::string reason(const LayoutPlanner& planner, const std::vector<PlannedLayout>& rows) {
  const PlannedLayout& best = rows.front();
  std::string text = strprintf(
      "%s on %s, %s of %s a rank with a GPU's workspace, reserve and context; the fastest that fits of %zu planned",
      human_ns(best.step_s * 1e9).c_str(), planner.profile().title.c_str(), human_bytes(best.bytes).c_str(),
      human_bytes(static_cast<double>(planner.profile().memory_bytes)).c_str(), rows.size());
  if (rows.size() > 1 && planner.fits(rows[1]))
    text += strprintf(", %.2g %% before %s", 100 * (rows[1].step_s / best.step_s - 1), rows[1].choice.flags().c_str());
  return text;
}

}  // namespace

std::string choose_layout(ConfigOptions& options) {
  refuse_twice_settled(options);
  TrainConfig config = in_its_world(options);
  if (const auto saved = config.load.empty() ? std::nullopt : saved_run(config)) {
    if (const auto kept = kept_layout(*saved, config, options)) {
      const std::vector<ConfigSetting> settings = settings_of(*kept, options, "checkpoint " + saved->folder);
      options.settle(settings);
      return "layout    " + flags_of(settings) + ": kept from " + saved->folder;
    }
  }
  const LayoutPlanner planner(config, kMemoryShare);
  const std::vector<PlannedLayout> rows = planner.search({.plans = kPlans,
                                                          .best = 2,  // also the second best, which the reason mentions
                                                          .pinned = pinned_by(options, config),
                                                          .beside = read_process_env().local_world_size});
  planner.require_fit(rows, kOrigin);
  rows.front().choice.apply(config);
  const std::vector<ConfigSetting> settings = settings_of(config, options, kOrigin);
  options.settle(settings);
  return "layout    " + flags_of(settings) + ": " + reason(planner, rows);
}

}  // namespace ranklab
