#include "core/plan/record_step.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/plan/built_rank.h"
#include "core/plan/replay.h"
#include "core/plan/short_first_step.h"
#include "core/runtime/before_step.h"
#include "core/runtime/engine.h"
#include "core/sim/memory_scope.h"
#include "core/sim/software_terms.h"

namespace ranklab {
namespace {

constexpr int64_t kSteps = 2;

RankTime time_of(RankContext& ctx) {
  const VirtualClock& clock = ctx.clock();
  RankTime time{.end_ns = clock.now_ns(), .compute_ns = clock.compute_ns(), .peer_wait_ns = clock.peer_wait_ns()};
  for (size_t axis = 0; axis < time.exposed_ns.size(); ++axis)
    time.exposed_ns[axis] = clock.exposed_ns(static_cast<Axis>(axis));
  time.flops = ctx.op_observer()->flops();
  time.kernel_times = ctx.op_observer()->kernel_times();
  return time;
}

RankTime since(const RankTime& begin, RankTime end) {
  end.begin_ns = begin.end_ns;
  end.compute_ns -= begin.compute_ns;
  end.peer_wait_ns -= begin.peer_wait_ns;
  for (size_t axis = 0; axis < end.exposed_ns.size(); ++axis) end.exposed_ns[axis] -= begin.exposed_ns[axis];
  end.flops -= begin.flops;
  end.kernel_times = end.kernel_times.since(begin.kernel_times);
  return end;
}

// What the ranks' threads report, by global rank.
struct Notes {
  std::mutex mutex;
  std::map<int, RankTime> begin;
  std::map<int, RankRecord> ranks;
};

// Resets peaks and notes the time, so that the recorded step is measured alone.
void note_begin(StepContext& c, Notes& notes) {
  if (c.step < kSteps - 1) return;
  thread_memory_book()->reset_peaks();
  const std::lock_guard lock(notes.mutex);
  notes.begin[c.ctx.global_rank()] = time_of(c.ctx);
}

void note_end(StepContext& c, Notes& notes) {
  const MemoryBook::Peaks peaks = thread_memory_book()->peaks();
  const std::lock_guard lock(notes.mutex);
  RankRecord& rank = notes.ranks[c.ctx.global_rank()];
  rank.global_rank = c.ctx.global_rank();
  rank.pp_rank = c.ctx.coordinate(Axis::kPp);
  rank.time = since(notes.begin.at(rank.global_rank), time_of(c.ctx));
  rank.time.flops += repeated(c.model).flops;
  rank.time.kernel_times.add(repeated(c.model).kernel_times);
  rank.traffic = repeated(c.model).traffic;
  rank.kept_bytes = kept_by_stages(c.model);
  rank.pass_ns = shortest_passes_ns(c.model);
  rank.at_peak = peaks.at_peak;
  rank.highest = peaks.highest;
  for (size_t i = 0; i < rank.after.size(); ++i)
    rank.after[i] = thread_memory_book()->bytes(static_cast<MemoryCategory>(i));
}

// Index: pipeline rank; value: the rank that runs for its stage.
using Representatives = std::vector<int>;

std::vector<int> stand_ins(const DeviceMesh& mesh, const Representatives& representatives) {
  std::vector<int> stand_in;
  for (int rank = 0; rank < mesh.world_size(); ++rank)
    stand_in.push_back(representatives[static_cast<size_t>(mesh.coordinate(Axis::kPp, rank))]);
  return stand_in;
}

// Which of two ranks takes longer: the one with more arithmetic, or, where kernels take hardly longer than their
// launch, the one with more of them; or the one with the most matrices to orthogonalize, whatever it attends to.
enum class Longest { kWork, kKernels, kMatrices };

// The context-parallel rank that takes longest to attend stands for all.
int slowest_context_rank(const RunPlan& plan, Longest by) {
  const ContextSplit& split = plan.config.context_split;
  const ModelConfig& model = plan.config.model;
  const int cp = plan.mesh.size(Axis::kCp);
  if (cp == 1) return 0;
  std::map<int64_t, int64_t> layers_of_window;
  for (int64_t layer = 0; layer < model.num_layers; ++layer) ++layers_of_window[model.window_of_layer(layer)];
  return slowest_rank({.seq_length = model.seq_length,
                       .ranks = cp,
                       .balance = split.balance,
                       // Gathered latents are attended to rank after rank.
                       .in_order = split.uses(ContextExchange::kAllGather) && !model.mla.enabled(),
                       .windows = {layers_of_window.begin(), layers_of_window.end()}},
                      by == Longest::kWork ? SlowestBy::kPairs : SlowestBy::kBlocks);
}

Representatives first_of_stages(const RunPlan& plan, Longest by) {
  const DeviceMesh& mesh = plan.mesh;
  const int context_rank = slowest_context_rank(plan, by);
  Representatives first(static_cast<size_t>(mesh.size(Axis::kPp)), -1);
  for (int rank = mesh.world_size() - 1; rank >= 0; --rank)
    if (mesh.coordinate(Axis::kCp, rank) == context_rank)
      first[static_cast<size_t>(mesh.coordinate(Axis::kPp, rank))] = rank;
  return first;
}

// What one member of a bucket's group updates: its work with whole matrices, the number of parameter pieces, and the
// sum of their elements.
struct Share {
  double work = 0;
  int64_t matrices = 0, pieces = 0, elements = 0;
  auto in_order(Longest by) const {
    const auto count = static_cast<double>(matrices);
    return by == Longest::kWork ? std::tuple(work, count, pieces, elements) : std::tuple(count, work, pieces, elements);
  }
};
using Shares = std::map<Axis, std::vector<Share>>;  // by group rank

Shares shares_of(const std::vector<GradBucket>& buckets) {
  Shares shares;
  for (const GradBucket& bucket : buckets) {
    if (bucket.shards == 1 && bucket.work.empty()) continue;
    std::vector<Share>& members = shares[bucket.axis];
    members.resize(std::max(static_cast<size_t>(bucket.shards), bucket.work.size()));
    for (size_t member = 0; member < bucket.work.size(); ++member) {
      members[member].work += bucket.work[member].work;
      members[member].matrices += bucket.work[member].matrices;
    }
    for (int member = 0; member < bucket.shards && bucket.shards > 1; ++member) {
      for (const ShardPiece& piece : pieces_of(bucket.layout, bucket.shards, member)) {
        ++members[static_cast<size_t>(member)].pieces;
        members[static_cast<size_t>(member)].elements += piece.elements();
      }
    }
  }
  return shares;
}

// Shards are equal up to padding, but not the number of parameter pieces in them: the rank with the most pieces takes
// longest. Whole matrices take longer than any of it.
Representatives fullest_owners(const RunPlan& plan, const std::map<int, Shares>& by_stage, Longest by) {
  const DeviceMesh& mesh = plan.mesh;
  const int context_rank = slowest_context_rank(plan, by);
  Representatives owners = first_of_stages(plan, by);
  std::map<int, Share> most;
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    const int pp_rank = mesh.coordinate(Axis::kPp, rank);
    if (mesh.coordinate(Axis::kTp, rank) != 0) continue;
    if (by != Longest::kMatrices && mesh.coordinate(Axis::kCp, rank) != context_rank) continue;
    Share own;
    for (const auto& [axis, members] : by_stage.at(pp_rank)) {
      const Share& share = members[static_cast<size_t>(mesh.coordinate(axis, rank))];
      own.work += share.work;
      own.matrices += share.matrices;
      own.pieces += share.pieces;
      own.elements += share.elements;
    }
    const auto [found, is_new] = most.try_emplace(pp_rank, own);
    if (!is_new && own.in_order(by) <= found->second.in_order(by)) continue;
    found->second = own;
    owners[static_cast<size_t>(pp_rank)] = rank;
  }
  return owners;
}

int64_t latest(const std::map<int, RankRecord>& ranks, int64_t RankTime::*when) {
  int64_t result = 0;
  for (const auto& [rank, record] : ranks) result = std::max(result, record.time.*when);
  return result;
}

// Terms that --what-if allows can together be longer than nanoseconds count.
int64_t nanoseconds(double ns) {
  constexpr double kLongest = 3e18;
  RANKLAB_CHECK(ns <= kLongest, ErrorKind::kInvalidArgument, .where = "plan",
                .what = "the step takes too long to count", .got = strprintf("%g s", ns * 1e-9),
                .want = strprintf("at most %g s", kLongest * 1e-9),
                .fix = "lower beside, slowest or collectives of --what-if");
  return std::llround(ns);
}

// What the clocks of a few ranks do not show: collectives take from the compute before which they hide, and thousands
// of GPUs wait for the slowest.
void add_what_clocks_lack(StepRecord& record, const RunPlan& plan) {
  double hidden = 0;  // of all ranks; messages of a pipeline take no SMs for long
  for (const RankRecord& rank : record.ranks)
    for (const auto& [axis, busy] : rank.traffic.busy_ns)
      if (axis != Axis::kPp)
        hidden += std::max(0.0, static_cast<double>(busy - rank.time.exposed_ns[static_cast<size_t>(axis)]));
  record.hidden_ns = nanoseconds(plan.profile.software.terms.beside * hidden /
                                 static_cast<double>(std::max<size_t>(record.ranks.size(), 1)));
  record.step_ns += record.hidden_ns;
  const double slowest = slowest_share(plan.profile, plan.mesh.world_size());
  record.slowest_ns = nanoseconds(slowest * static_cast<double>(record.step_ns));
  record.step_ns += record.slowest_ns;
}

}  // namespace

RunPlan plan_to_record(RunPlan plan) {
  TrainConfig& c = plan.config;
  // Simulated ranks, which are the default.
  const TrainConfig simulated;
  c.backend = simulated.backend;
  c.device = simulated.device;
  c.virtual_time = simulated.virtual_time;
  // That software drops probabilities within its own attention; this project computes them in blocks for it.
  if (plan.of_other_software()) c.model.attention_dropout = 0;
  plan.ramp = {};  // of the batch size in the end
  plan.ramp_schedules.clear();
  c.eval_interval = 0;
  c.sample_tokens = 0;
  c.save_dir.clear();
  c.load.clear();
  c.check_gradient_types = false;
  c.trace = true;
  c.trace_level = "action";  // calls and actions are all that is read
  c.trace_step_start = kSteps - 1;
  c.trace_step_end = kSteps;
  return plan;
}

namespace {

// Those that may be the slowest of their stages, each once.
std::vector<Representatives> representatives_of(const RunPlan& plan, const ShapeWorldMaker& make_world,
                                                const RuntimeComponents& parts) {
  const bool unequal = plan.zero().optimizer || plan.config.optimizer == OptimizerKind::kMuon;
  std::map<int, Shares> shares;
  if (unequal && plan.replicas() > 1) {
    const Representatives first = first_of_stages(plan, Longest::kWork);
    std::mutex mutex;
    build_ranks(plan, on_shapes(parts, make_world(stand_ins(plan.mesh, first))), [&](StepContext& c) {
      const std::lock_guard lock(mutex);
      shares[c.ctx.coordinate(Axis::kPp)] = shares_of(c.optimizer.grad_buckets());
    });
  }
  std::vector<Representatives> result;
  for (const Longest by : {Longest::kWork, Longest::kKernels, Longest::kMatrices}) {
    if (by == Longest::kMatrices && plan.config.optimizer != OptimizerKind::kMuon) continue;
    Representatives one = shares.empty() ? first_of_stages(plan, by) : fullest_owners(plan, shares, by);
    if (std::ranges::find(result, one) == result.end()) result.push_back(std::move(one));
  }
  return result;
}

StepRecord record_after(FirstStep first, const RunPlan& recorded, const ShapeWorldMaker& make_world,
                        const RuntimeComponents& own, const Representatives& representatives) {
  const auto notes = std::make_shared<Notes>();
  RuntimeComponents parts = with_repeated_passes(on_shapes(own, make_world(stand_ins(recorded.mesh, representatives))));
  if (first == FirstStep::kShort) parts.schedule_selector = with_short_first_step(parts.schedule_selector);
  parts.schedule_selector =
      before_each_step(parts.schedule_selector, [notes](StepContext& c) { note_begin(c, *notes); });
  RuntimeEngine engine(std::move(parts), recorded);
  engine.set_finale([&](StepContext& c) { note_end(c, *notes); });
  TrainResult result = engine.fit(kSteps);
  for (const RankTrace& trace : result.traces)
    if (const auto rank = notes->ranks.find(trace.global_rank); rank != notes->ranks.end())
      rank->second.traffic.add(trace.events, trace, recorded.mesh, recorded.gpus_per_node());
  StepRecord record{.step_ns = latest(notes->ranks, &RankTime::end_ns) - latest(notes->ranks, &RankTime::begin_ns)};
  for (auto& [rank, kept] : notes->ranks) record.ranks.push_back(std::move(kept));
  record.traces = std::move(result.traces);
  return record;
}

}  // namespace

StepRecord record_step(const RunPlan& plan, const ShapeWorldMaker& make_world, const RuntimeComponents& own,
                       FirstStep first) {
  const RunPlan recorded = plan_to_record(plan);
  const bool shortly = first == FirstStep::kShort && may_begin_short(recorded);
  StepRecord record;
  for (const Representatives& representatives : representatives_of(recorded, make_world, own)) {
    const auto after = [&](FirstStep step) { return record_after(step, recorded, make_world, own, representatives); };
    StepRecord one = after(shortly ? FirstStep::kShort : FirstStep::kWhole);
    if (shortly && !begins_as_it_ends(one)) one = after(FirstStep::kWhole);
    if (record.ranks.empty() || one.step_ns > record.step_ns) record = std::move(one);
  }
  add_what_clocks_lack(record, recorded);
  return record;
}

StepRecord record_step(const RunPlan& plan, const ShapeWorldMaker& make_world) {
  return record_step(plan, make_world, default_parts());
}

}  // namespace ranklab
