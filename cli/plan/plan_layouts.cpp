#include "cli/plan/plan_layouts.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cli/common/terminal.h"
#include "cli/plan/plan_workers.h"
#include "cli/training_module.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/plan/measured/framework_memory.h"

namespace ranklab {

LayoutPlanner::LayoutPlanner(TrainConfig base, double memory_share)
    : base_(std::move(base)), memory_share_(memory_share), profile_(profile_of(base_)) {}

LayoutDetails LayoutPlanner::details_of(const TrainConfig& config) {
  const RunPlan plan = resolve(config);
  const StepRecord record = training_functions().record_step(plan);
  const StepTime time = time_of(record);
  return {time, mfu(plan, time.total_ns), framework_memory(plan, record).on_device(),
          static_cast<double>(record.pass_ns()) * 1e-9};
}

TrainConfig LayoutPlanner::with(const LayoutChoice& choice) const {
  TrainConfig config = base_;
  choice.apply(config);
  return config;
}

PlannedLayout LayoutPlanner::plan(const LayoutChoice& choice) const {
  PlannedLayout row;
  row.choice = choice;
  try {
    const LayoutDetails one = details_of(with(choice));
    row.step_s = one.time.total_ns * 1e-9;
    row.mfu = one.mfu;
    row.bytes = one.bytes;
    row.pass_s = one.pass_s;
  } catch (const Error& error) {
    row.refused = error.what();
  }
  return row;
}

std::vector<PlannedLayout> LayoutPlanner::search(const Wanted& wanted) const {
  const bool shown = on_terminal(STDERR_FILENO);
  training_functions();  // opens the module before workers are forked, which inherit it
  PlanWorkers workers(std::max(1, plans_at_once() / std::max(1, wanted.beside)),
                      [this](const LayoutChoice& one) { return plan(one); });
  int done = 0;
  const auto tell = [&] {
    if (shown) std::fprintf(stderr, "\r%d of at most %d plans ", std::min(++done, wanted.plans), wanted.plans);
  };
  const std::vector<PlannedLayout> rows =
      search_layouts(base_, profile_,
                     {.bytes = most_bytes(),
                      .plans = wanted.plans,
                      .at_once = workers.size(),
                      .best = wanted.best,
                      .pinned = wanted.pinned},
                     [&](const std::vector<LayoutChoice>& choices) { return workers.plan(choices, tell); });
  if (shown) std::fprintf(stderr, "\n");
  return rows;
}

void LayoutPlanner::require_fit(const std::vector<PlannedLayout>& rows, const std::string& where) const {
  if (!rows.empty() && fits(rows.front())) return;
  const bool refused = !rows.empty() && !rows.front().refused.empty();
  throw Error(ErrorKind::kInvalidArgument,
              {.where = where,
               .what = "no layout fits this machine",
               .got = rows.empty() ? "none that divides the world and the batch and could fit"
                      : refused    ? rows.front().refused
                                   : "at least " + human_bytes(rows.front().bytes) + " a rank",
               .want = "at most " + human_bytes(most_bytes()),
               .fix = "use more or larger GPUs, another --gbs, or a larger --plans"});
}

double LayoutPlanner::rate(double step_s) const {
  return static_cast<double>(base_.global_batch_size * base_.model.seq_length) / step_s / base_.parallel.world;
}

}  // namespace ranklab
