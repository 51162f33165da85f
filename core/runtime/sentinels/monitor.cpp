#include "core/runtime/sentinels/monitor.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "core/runtime/sentinels/families.h"

namespace ranklab {
namespace {

int64_t each_step(const TrainConfig&) { return 1; }
int64_t looks(const TrainConfig& c) { return c.sentinels.steps_between_looks(); }
int64_t probes(const TrainConfig& c) { return c.sentinels.steps_between_probes(); }
int64_t drift(const TrainConfig& c) { return c.sentinels.drift_interval; }
// Only TensorBoard reads histograms.
int64_t histograms(const TrainConfig& c) { return c.tensorboard_dir.empty() ? 0 : c.sentinels.histogram_interval; }

struct FamilyRow {
  SentinelMode mode;  // the lowest mode in which it is used
  MakeFamily make;
  int64_t (*interval)(const TrainConfig&);
};
constexpr FamilyRow kFamilies[] = {
    {SentinelMode::kMinimal, make_loss_family, each_step},
    {SentinelMode::kMinimal, make_rate_family, each_step},
    {SentinelMode::kMinimal, make_gradient_family, each_step},
    {SentinelMode::kMinimal, make_expert_family, each_step},
    {SentinelMode::kMinimal, make_time_family, each_step},
    {SentinelMode::kMinimal, make_memory_family, each_step},
    {SentinelMode::kMinimal, make_checkpoint_family, each_step},
    {SentinelMode::kStandard, make_data_family, each_step},
    {SentinelMode::kStandard, make_update_family, looks},
    {SentinelMode::kStandard, make_histogram_family, histograms},
    {SentinelMode::kStandard, make_activation_family, looks},
    {SentinelMode::kStandard, make_probe_family, probes},
    {SentinelMode::kStandard, make_replica_family, drift},
};

}  // namespace

double running_value(const RunningValues& values, const std::string& name, double otherwise) {
  const auto found = values.find(name);
  return found == values.end() ? otherwise : found->second;
}

SentinelMonitor::SentinelMonitor(SentinelContext context, const MakeOwnFamily& parity_watch)
    : context_(std::move(context)),
      judge_(SentinelRules(context_.plan.config.sentinels.mode, context_.plan.config.sentinels.rules)) {
  const TrainConfig& config = context_.plan.config;
  for (const FamilyRow& row : kFamilies) {
    if (row.mode > config.sentinels.mode || row.interval(config) == 0) continue;
    Group& group = groups_[row.interval(config)];
    group.families.push_back(row.make(context_, group.table));
  }
  if (config.sentinels.parity_interval == 0 || !parity_watch) return;
  Group& group = groups_[config.sentinels.parity_interval];
  group.families.push_back(parity_watch(context_, group.table));
}

void SentinelMonitor::show(SentinelFamily& family, bool there) {
  if (ModuleHook* hook = family.module_hook()) context_.model.registry().hooks().set(*hook, there);
  UpdateWatches* updates = context_.optimizer.update_watches();
  if (UpdateWatch* watch = family.update_watch(); watch != nullptr && updates != nullptr) updates->set(*watch, there);
  if (BatchWatch* watch = family.batch_watch()) {
    std::erase(context_.batch_watches, watch);
    if (there) context_.batch_watches.push_back(watch);
  }
}

void SentinelMonitor::begin_step(int64_t step) {
  for (auto& [interval, group] : groups_) {
    if (!due(interval, step)) continue;
    for (const auto& family : group.families) {
      family->begin(step);
      show(*family, true);
    }
  }
}

bool SentinelMonitor::reads_parameters(int64_t step) const {
  return std::ranges::any_of(groups_, [&](const auto& one) {
    const auto& [interval, group] = one;
    return due(interval, step) &&
           std::ranges::any_of(group.families, [](const auto& family) { return family->reads_parameters(); });
  });
}

std::shared_ptr<const SentinelReport> SentinelMonitor::end_step(const SentinelStep& step) {
  const auto report = std::make_shared<SentinelReport>();
  for (auto& [interval, group] : groups_) {
    if (!due(interval, step.step)) continue;
    group.table.clear();
    for (const auto& family : group.families) {
      show(*family, false);
      family->fill(step, group.table);
    }
    group.table.exchange(context_.world, context_.ctx.control_device());
    for (const auto& family : group.families) family->report(step, group.table, *report);
  }
  judge_.judge(*report);
  return report;
}

void SentinelMonitor::validated(double loss) {
  for (auto& [interval, group] : groups_)
    for (const auto& family : group.families) family->validated(loss);
}
void SentinelMonitor::checkpointed(const CheckpointNote& note) {
  for (auto& [interval, group] : groups_)
    for (const auto& family : group.families) family->checkpointed(note);
}

RunningValues SentinelMonitor::running_values() const {
  RunningValues values;
  judge_.keep(values);
  for (const auto& [interval, group] : groups_)
    for (const auto& family : group.families) family->keep(values);
  return values;
}
void SentinelMonitor::go_on_from(const RunningValues& values) {
  judge_.go_on_from(values);
  for (auto& [interval, group] : groups_)
    for (const auto& family : group.families) family->go_on_from(values);
}

std::vector<int64_t> sentinel_layers(int64_t layers, SentinelMode mode) {
  if (mode == SentinelMode::kDebug) {
    std::vector<int64_t> all(static_cast<size_t>(layers));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  const std::set<int64_t> some = {0, layers / 2, layers - 1};
  return {some.begin(), some.end()};
}

}  // namespace ranklab
