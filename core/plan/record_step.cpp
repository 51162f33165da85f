#include "core/plan/record_step.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/plan/cost_probe.h"
#include "core/plan/replay.h"
#include "core/runtime/before_step.h"
#include "core/runtime/engine.h"
#include "core/runtime/replica_documents.h"
#include "core/runtime/shapes/built_rank.h"
#include "core/runtime/training_data.h"
#include "core/sim/software_terms.h"
#include "core/trace/repeated_calls.h"

namespace ranklab {
namespace {

constexpr int64_t kSteps = 2;

// The plan in the form in which it is recorded: with its second step traced.
RunPlan plan_to_record(RunPlan plan) {
  plan = plan_on_shapes(std::move(plan));
  TrainConfig& c = plan.config;
  c.trace = true;
  c.trace_level = "action";  // calls and actions are enough
  c.trace_step_start = kSteps - 1;
  c.trace_step_end = kSteps;
  return plan;
}

// The first of the two recorded steps only creates what stays, so it gets a single microbatch per chain of stages, as
// at the start of a growing batch; this halves the cost of a plan with thousands of microbatches. The second step is
// the same to the bit if all ranks meet between the two steps, in the norm of the gradients that are clipped
// (tests/plan checks that they are equal). They do meet, unless kernels that a rank launches meanwhile take longer than
// that exchange: then the last rank to arrive continues later than the others, and after a short step that may be a
// different rank. RETURNS: whether the first step of this plan may be short.
bool may_begin_short(const RunPlan& plan) {
  const bool ranks_meet = plan.mesh.size(Axis::kPp) == 1 || plan.config.clip_grad > 0;
  return ranks_meet && microbatches_in_order(plan) && plan.schedule.num_microbatches > plan.schedule.num_chains();
}

// REQUIRES: may_begin_short(), and a batch that does not grow.
RunPlan with_short_first_step(RunPlan plan) {
  // If backwards are split, what stays between B and W is thus known from the first pass.
  const Schedule first = one_per_chain(plan.schedule);
  const int64_t whole = plan.config.global_batch_size;
  const int64_t start = whole / plan.schedule.num_microbatches * first.num_microbatches;
  plan.ramp = {.whole = whole, .start = start, .increment = whole - start, .samples = 1};
  plan.ramp_schedules = {{first.num_microbatches, first}};
  return plan;
}

// Whether, for each rank, the offset from the last rank is the same at the beginning of the recorded step as at its
// end, to a 2,000th of the step. If not, the first step left the ranks in a state that other steps do not produce.
bool has_steady_offsets(const StepRecord& record) {
  constexpr int64_t kShare = 2000;
  const int64_t last_begin = record.latest(&RankTime::begin_ns), last_end = record.latest(&RankTime::end_ns);
  return std::ranges::all_of(record.ranks, [&](const RankRecord& rank) {
    const int64_t before = last_begin - rank.time.begin_ns, after = last_end - rank.time.end_ns;
    return std::abs(before - after) <= record.step_ns / kShare;
  });
}

// What the ranks' threads measure, by global rank.
struct Notes {
  std::mutex mutex;
  std::map<int, CostProbe> steps;
  std::map<int, RankRecord> ranks;
};

// The first step is not measured.
void note_begin(StepContext& c, Notes& notes) {
  const std::lock_guard lock(notes.mutex);
  if (c.step == kSteps - 1) notes.steps.try_emplace(c.ctx.global_rank(), c.ctx);
}

// Sums over all groups that share optimizer states.
double pieces_us_of(const std::vector<GradBucket>& buckets, const RunPlan& plan) {
  if (plan.zero().parameters) return 0;                // gathered before use, layer by layer
  std::map<std::pair<Axis, int>, int64_t> parameters;  // by group and the group's size
  for (const GradBucket& bucket : buckets)
    if (bucket.shards > 1)
      parameters[{bucket.axis, bucket.shards}] += static_cast<int64_t>(bucket.layout.places.size());
  double sum = 0;
  for (const auto& [group, count] : parameters) sum += pieces_us(plan.profile, count, group.second);
  return sum;
}

void note_end(StepContext& c, Notes& notes) {
  const std::lock_guard lock(notes.mutex);
  const int global_rank = c.ctx.global_rank();
  const CostMemo step = notes.steps.at(global_rank).end();
  const PassReport& passes = passes_of(c.model);
  RankRecord& rank = notes.ranks[global_rank];
  rank = {.global_rank = global_rank,
          .pp_rank = c.ctx.coordinate(Axis::kPp),
          .at_peak = step.peaks.at_peak,
          .highest = step.peaks.highest,
          .after = step.after,
          .traffic = step.traffic,
          .time = step.time,
          .kept_bytes = passes.kept_bytes,
          .pass_ns = passes.shortest_ns,
          .pieces_us = pieces_us_of(c.optimizer.grad_buckets(), c.plan)};
  rank.traffic.add(passes.repeated);
}

// Limited, because together the values that --what-if allows can exceed what an integer of nanoseconds holds.
int64_t nanoseconds(double ns) {
  constexpr double kLongest = 3e18;
  RANKLAB_CHECK(ns <= kLongest, ErrorKind::kInvalidArgument, .where = "plan",
                .what = "the step takes too long to count", .got = strprintf("%g s", ns * 1e-9),
                .want = strprintf("at most %g s", kLongest * 1e-9),
                .fix = "lower beside, pieces, slowest or collectives of --what-if");
  return std::llround(ns);
}

// By how much concurrent collectives slow down a step's compute.
double hidden_ns(const StepRecord& record, const RunPlan& plan) {
  double hidden = 0;  // of all ranks; pipeline messages occupy SMs only briefly
  for (const RankRecord& rank : record.ranks)
    for (const auto& [axis, busy] : rank.traffic.busy_ns)
      if (axis != Axis::kPp)
        hidden += std::max(0.0, static_cast<double>(busy - rank.time.exposed_ns[static_cast<size_t>(axis)]));
  return plan.profile.software.terms.beside * hidden / static_cast<double>(std::max<size_t>(record.ranks.size(), 1));
}

// Adds costs that the clocks of a few ranks do not show: collectives slow down concurrent compute, updated parameters
// are handed out one by one, and thousands of GPUs wait for the slowest one.
StepRecord with_what_clocks_lack(StepRecord record, const RunPlan& plan) {
  const auto add = [&](double& part, double ns) {
    const int64_t whole = nanoseconds(ns);
    part = static_cast<double>(whole);
    record.step_ns += whole;
  };
  double pieces_us = 0;
  for (const RankRecord& rank : record.ranks) pieces_us = std::max(pieces_us, rank.pieces_us);
  add(record.added.hidden_ns, hidden_ns(record, plan));
  add(record.added.pieces_ns, 1e3 * pieces_us);
  add(record.added.slowest_ns,
      slowest_share(plan.profile, plan.mesh.world_size()) * static_cast<double>(record.step_ns));
  return record;
}

// How a step is recorded.
struct Recording {
  FirstStep first = FirstStep::kShort;
  RepeatedCalls calls = RepeatedCalls::kCounted;
  int64_t steps = 1;  // measured together, after the first
};

StepRecord record_with(const RunPlan& plan, std::shared_ptr<World> world, const RuntimeComponents& own, Recording how) {
  const auto notes = std::make_shared<Notes>();
  RuntimeComponents parts = with_repeated_passes(on_shapes(own, std::move(world)), how.calls);
  parts.schedule_selector =
      before_each_step(parts.schedule_selector, [notes](StepContext& c) { note_begin(c, *notes); });
  RuntimeEngine engine(std::move(parts), plan);
  engine.set_finale([&](StepContext& c) { note_end(c, *notes); });
  StepRecord record{.traces = engine.fit(kSteps - 1 + how.steps).traces};
  for (auto& [rank, kept] : notes->ranks) record.ranks.push_back(std::move(kept));
  record.step_ns = record.latest(&RankTime::end_ns) - record.latest(&RankTime::begin_ns);
  return record;
}

// The step in three parts: until gradients are reduced, until the global gradient norm is known, and until the end. At
// the end of each part all ranks wait for the slowest.
using StepParts = std::array<int64_t, 3>;

StepParts parts_of(const StepRecord& record) {
  const int64_t begin = record.latest(&RankTime::begin_ns);
  int64_t reduced = begin, normed = begin;
  for (const RankTrace& trace : record.traces) {
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kPhase) continue;
      const std::string& name = trace.names[event.name];
      if (name == kGradientSyncSpan) reduced = std::max(reduced, event.virtual_end_ns);
      if (name == kGradientNormSpan) normed = std::max(normed, event.virtual_end_ns);
    }
  }
  normed = std::max(reduced, normed);
  return {reduced - begin, normed - reduced, begin + record.step_ns - normed};
}

StepRecord record_slowest(const RunPlan& plan, const ShapeWorldMaker& make_world, const RuntimeComponents& own,
                          Recording how, const std::vector<ReplicaDocuments>& replicas) {
  RunPlan recorded = plan_to_record(plan);
  recorded.config.trace_step_start += how.steps - 1;
  recorded.config.trace_step_end += how.steps - 1;
  const bool shortly = how.first == FirstStep::kShort && may_begin_short(recorded);
  StepRecord record;
  StepParts slowest{};  // maximum of each part; may come from different ranks
  for (const StandIns& stand_in : stand_ins_to_record(recorded, make_world, own, replicas)) {
    const auto record_of = [&](const RunPlan& whole) { return record_with(whole, make_world(stand_in), own, how); };
    StepRecord one = record_of(shortly ? with_short_first_step(recorded) : recorded);
    if (shortly && !has_steady_offsets(one)) one = record_of(recorded);
    const StepParts parts = parts_of(one);
    one.keep_slowest_of_stages();
    if (how.calls == RepeatedCalls::kTraced) number_repeated_calls(one.traces);  // for the ranks that are kept
    for (size_t part = 0; part < parts.size(); ++part) slowest[part] = std::max(slowest[part], parts[part]);
    if (record.ranks.empty() || one.step_ns > record.step_ns) std::swap(record, one);
    if (!one.ranks.empty()) record.keep_fuller(one);  // the slowest rank need not be the fullest
  }
  record.step_ns = std::accumulate(slowest.begin(), slowest.end(), int64_t{0});
  return record;
}

// DiLoCo without an outer update in the recorded steps, nor the start of one.
RunPlan before_outer_update(RunPlan plan) {
  DilocoConfig& c = plan.config.diloco;
  c.sync_steps = (kSteps + 1) * c.fragments;
  c.sync_delay = 0;
  return plan;
}

// DiLoCo with as few steps between outer updates as the effects of one take: the start of a synchronization, the
// update, and the step after it, in which the stages that had nothing to update need not wait for the others.
RunPlan with_frequent_updates(RunPlan plan) {
  DilocoConfig& c = plan.config.diloco;
  const int64_t delay = std::min<int64_t>(c.sync_delay, 1), interval = std::min(c.interval(), delay + 2);
  c.sync_delay = delay;
  c.sync_steps = interval * c.fragments;
  return plan;
}

// DiLoCo's outer updates are averaged over the steps between them. Fragments differ: the first has the embedding, the
// last the head, and each delays the pipeline stages that hold its layers. So each is updated once, up to a number that
// keeps plans fast.
StepRecord record_mean(const RunPlan& plan, const ShapeWorldMaker& make_world, const RuntimeComponents& own,
                       Recording how, const std::vector<ReplicaDocuments>& replicas) {
  constexpr int64_t kMostFragments = 8;
  const DilocoConfig& diloco = plan.config.diloco;
  const auto recorded = [&](const RunPlan& one, Recording form) {
    return record_slowest(one, make_world, own, form, replicas);
  };
  if (!diloco.enabled()) return with_what_clocks_lack(recorded(plan, how), plan);
  StepRecord record = recorded(before_outer_update(plan), how);
  const StepRecord updated = recorded(with_outer_update(plan), how);
  const RunPlan frequent = with_frequent_updates(plan);
  const int64_t fragments = std::min(diloco.fragments, kMostFragments);
  const int64_t steps = frequent.config.diloco.interval() * fragments;
  const StepRecord cycle = recorded(frequent, {.first = FirstStep::kWhole, .steps = steps});
  const double update_ns =
      static_cast<double>(cycle.step_ns - steps * record.step_ns) / static_cast<double>(fragments) +
      hidden_ns(updated, plan) - hidden_ns(record, plan);
  const int64_t whole_ns = nanoseconds(std::max(update_ns, 0.0));
  const int64_t mean_ns = whole_ns * diloco.fragments / diloco.sync_steps;
  record.added.outer_update_ns = static_cast<double>(whole_ns);
  record.added.outer_ns = static_cast<double>(mean_ns);
  record.step_ns += mean_ns;
  record.keep_fuller(updated);
  return with_what_clocks_lack(std::move(record), plan);
}

}  // namespace

RunPlan with_outer_update(RunPlan plan) {
  DilocoConfig& c = plan.config.diloco;
  c.sync_steps = kSteps * c.fragments;
  c.sync_delay = std::min<int64_t>(c.sync_delay, kSteps - 1);
  return plan;
}

StepRecord record_step(const RunPlan& plan, const ShapeWorldMaker& make_world, const RuntimeComponents& own,
                       FirstStep first) {
  return record_mean(plan, make_world, own, {.first = first}, {});
}

StepRecord record_step(const RunPlan& plan, const ShapeWorldMaker& make_world, RepeatedCalls calls) {
  RuntimeComponents parts = default_parts();
  const Recording how = {.calls = calls};
  if (!plan.config.documents.reset_attention_mask) return record_mean(plan, make_world, parts, how, {});
  RunPlan as_known = plan;
  std::vector<ReplicaDocuments> replicas;
  std::string unknown;
  try {
    const TrainingData data = opened_data(plan);
    replicas = replica_documents(data, plan_to_record(plan), kSteps - 1);
    parts.data_provider = provide_training_data(data);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kIo) throw;
    // A plan may describe a machine that has the data, so missing data here is no error.
    as_known.config.documents.reset_attention_mask = false;
    unknown = error.what();
  }
  StepRecord record = record_mean(as_known, make_world, parts, how, replicas);
  record.documents_unknown = unknown;
  return record;
}

}  // namespace ranklab
