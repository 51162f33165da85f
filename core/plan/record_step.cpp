#include "core/plan/record_step.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <tuple>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/comm/node_members.h"
#include "core/plan/built_rank.h"
#include "core/plan/pass_memo.h"
#include "core/plan/replay.h"
#include "core/plan/replica_documents.h"
#include "core/plan/short_first_step.h"
#include "core/runtime/before_step.h"
#include "core/runtime/engine.h"
#include "core/runtime/training_data.h"
#include "core/sim/software_terms.h"

namespace ranklab {
namespace {

constexpr int64_t kSteps = 2;

// What the ranks' threads measure, by global rank.
struct Notes {
  std::mutex mutex;
  std::map<int, PassProbe> steps;
  std::map<int, RankRecord> ranks;
};

// The last step is measured alone.
void note_begin(StepContext& c, Notes& notes) {
  const std::lock_guard lock(notes.mutex);
  if (c.step == kSteps - 1) notes.steps.try_emplace(c.ctx.global_rank(), c.ctx);
}

// Of all groups that share states of the optimizer.
double pieces_us_of(const std::vector<GradBucket>& buckets, const RunPlan& plan) {
  if (plan.zero().parameters) return 0;                // gathered before use, layer by layer
  std::map<std::pair<Axis, int>, int64_t> parameters;  // by group and its size
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
  const PassMemo step = notes.steps.at(global_rank).end();
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

// Which rank of a stage takes longest: the one with the most arithmetic, or, where kernels take hardly longer than
// their launch, the one with the most of them; or the one with the most matrices to orthogonalize, whatever it attends
// to; or the one whose layers exchange most between nodes, where groups do not lie alike on them; or, where attention
// keeps within documents, the one whose batches have the most or the longest.
enum class Longest { kWork, kKernels, kMatrices, kLinks, kDocuments, kPairs };

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
                      by == Longest::kWork || by == Longest::kPairs ? SlowestBy::kPairs : SlowestBy::kBlocks);
}

// For each rank the members of the groups within its layers that are on other nodes.
std::vector<int64_t> members_elsewhere(const RunPlan& plan) {
  std::vector<int64_t> elsewhere(static_cast<size_t>(plan.mesh.world_size()), 0);
  for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kEp, Axis::kEtp}) {
    if (plan.mesh.size(axis) == 1) continue;
    for (const Group& group : plan.mesh.groups(axis)) {
      const std::map<int, int64_t> here = members_of_nodes(group, plan.gpus_per_node());
      for (const int rank : group.global_ranks)
        elsewhere[static_cast<size_t>(rank)] += group.size() - here.at(rank / plan.gpus_per_node());
    }
  }
  return elsewhere;
}

bool alike_on_nodes(const RunPlan& plan) {
  const std::vector<int64_t> elsewhere = members_elsewhere(plan);
  return std::ranges::all_of(elsewhere, [&](int64_t own) { return own == elsewhere.front(); });
}

// What one member of a bucket's group updates: its work with whole matrices, the number of parameter pieces, and the
// sum of their elements. And with how many it exchanges between nodes, and what its batches attend to.
struct Share {
  MatrixWork work = {};
  int64_t pieces = 0, elements = 0, elsewhere = 0;
  ReplicaDocuments documents = {};
  auto in_order(Longest by) const {
    const auto count = static_cast<double>(work.matrices);
    const double most = by == Longest::kLinks       ? static_cast<double>(elsewhere)
                        : by == Longest::kDocuments ? static_cast<double>(documents.count)
                        : by == Longest::kPairs     ? static_cast<double>(documents.pairs)
                                                    : count;
    return by == Longest::kWork ? std::tuple(work.cost, count, pieces, elements)
                                : std::tuple(most, work.cost, pieces, elements);
  }
};
using Shares = std::map<Axis, std::vector<Share>>;  // by group rank

Shares shares_of(const std::vector<GradBucket>& buckets) {
  Shares shares;
  for (const GradBucket& bucket : buckets) {
    if (bucket.shards == 1 && bucket.work.empty()) continue;
    std::vector<Share>& members = shares[bucket.axis];
    members.resize(std::max(static_cast<size_t>(bucket.shards), bucket.work.size()));
    for (size_t member = 0; member < bucket.work.size(); ++member) members[member].work += bucket.work[member];
    for (int member = 0; member < bucket.shards && bucket.shards > 1; ++member) {
      for (const ShardPiece& piece : pieces_of(bucket.layout, bucket.shards, member)) {
        ++members[static_cast<size_t>(member)].pieces;
        members[static_cast<size_t>(member)].elements += piece.elements();
      }
    }
  }
  return shares;
}

Share share_of(int rank, const DeviceMesh& mesh, const Shares& shares) {
  Share own;
  for (const auto& [axis, members] : shares) {
    const Share& share = members[static_cast<size_t>(mesh.coordinate(axis, rank))];
    own.work += share.work;
    own.pieces += share.pieces;
    own.elements += share.elements;
  }
  return own;
}

// For each rank the one that runs in its place: of its stage the one that owns most, the first of several. Shards are
// equal up to padding, but not the number of parameter pieces in them: the rank with the most pieces takes longest.
// Whole matrices take longer than any of it.
StandIns fullest_stand_ins(const RunPlan& plan, const std::map<int, Shares>& by_stage,
                           const std::vector<ReplicaDocuments>& replicas, Longest by) {
  const DeviceMesh& mesh = plan.mesh;
  const int context_rank = slowest_context_rank(plan, by);
  const bool of_any_context = (by == Longest::kMatrices && !by_stage.empty()) || by == Longest::kLinks;
  const std::vector<int64_t> elsewhere =
      by == Longest::kLinks ? members_elsewhere(plan) : std::vector<int64_t>(static_cast<size_t>(mesh.world_size()));
  std::map<int, std::pair<Share, int>> fullest;  // and its rank, by pipeline rank
  StandIns stand_in;
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    if (mesh.coordinate(Axis::kTp, rank) != 0) continue;
    if (!of_any_context && mesh.coordinate(Axis::kCp, rank) != context_rank) continue;
    const int pp_rank = mesh.coordinate(Axis::kPp, rank);
    Share own = by_stage.contains(pp_rank) ? share_of(rank, mesh, by_stage.at(pp_rank)) : Share{};
    own.elsewhere = elsewhere[static_cast<size_t>(rank)];
    if (!replicas.empty()) own.documents = replicas[static_cast<size_t>(mesh.coordinate(Axis::kDp, rank))];
    const auto [found, is_new] = fullest.try_emplace(pp_rank, own, rank);
    if (!is_new && own.in_order(by) > found->second.first.in_order(by)) found->second = {own, rank};
  }
  for (int rank = 0; rank < mesh.world_size(); ++rank)
    stand_in.push_back(fullest.at(mesh.coordinate(Axis::kPp, rank)).second);
  return stand_in;
}

// Terms that --what-if allows can together be longer than nanoseconds count.
int64_t nanoseconds(double ns) {
  constexpr double kLongest = 3e18;
  RANKLAB_CHECK(ns <= kLongest, ErrorKind::kInvalidArgument, .where = "plan",
                .what = "the step takes too long to count", .got = strprintf("%g s", ns * 1e-9),
                .want = strprintf("at most %g s", kLongest * 1e-9),
                .fix = "lower beside, pieces, slowest or collectives of --what-if");
  return std::llround(ns);
}

// What the clocks of a few ranks do not show: collectives take from the compute before which they hide, updated
// parameters are handed out one by one, and thousands of GPUs wait for the slowest.
void add_what_clocks_lack(StepRecord& record, const RunPlan& plan) {
  double hidden = 0;  // of all ranks; messages of a pipeline take no SMs for long
  for (const RankRecord& rank : record.ranks)
    for (const auto& [axis, busy] : rank.traffic.busy_ns)
      if (axis != Axis::kPp)
        hidden += std::max(0.0, static_cast<double>(busy - rank.time.exposed_ns[static_cast<size_t>(axis)]));
  record.hidden_ns = nanoseconds(plan.profile.software.terms.beside * hidden /
                                 static_cast<double>(std::max<size_t>(record.ranks.size(), 1)));
  record.step_ns += record.hidden_ns;
  for (const RankRecord& rank : record.ranks)
    record.pieces_ns = std::max(record.pieces_ns, nanoseconds(1e3 * rank.pieces_us));
  record.step_ns += record.pieces_ns;
  const double slowest = slowest_share(plan.profile, plan.mesh.world_size());
  record.slowest_ns = nanoseconds(slowest * static_cast<double>(record.step_ns));
  record.step_ns += record.slowest_ns;
}

}  // namespace

StandIns first_stand_ins(const RunPlan& plan) { return fullest_stand_ins(plan, {}, {}, Longest::kWork); }

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

// Those that may be the slowest of their stages, each choice once.
std::vector<StandIns> choices_of_stand_ins(const RunPlan& plan, const ShapeWorldMaker& make_world,
                                           const RuntimeComponents& parts,
                                           const std::vector<ReplicaDocuments>& replicas) {
  const bool unequal = plan.zero().optimizer || plan.config.optimizer == OptimizerKind::kMuon;
  std::map<int, Shares> shares;
  if (unequal && plan.replicas() > 1) {
    std::mutex mutex;
    build_ranks(plan, on_shapes(parts, make_world(first_stand_ins(plan))), [&](StepContext& c) {
      const std::lock_guard lock(mutex);
      shares[c.ctx.coordinate(Axis::kPp)] = shares_of(c.optimizer.grad_buckets());
    });
  }
  std::vector<StandIns> choices;
  for (const Longest by :
       {Longest::kWork, Longest::kKernels, Longest::kMatrices, Longest::kLinks, Longest::kDocuments, Longest::kPairs}) {
    if (by == Longest::kMatrices && plan.config.optimizer != OptimizerKind::kMuon) continue;
    if (by == Longest::kLinks && alike_on_nodes(plan)) continue;
    const bool by_documents = by == Longest::kDocuments || by == Longest::kPairs;
    const bool by_attention = by == Longest::kWork || by == Longest::kKernels;
    if (replicas.empty() ? by_documents : by_attention) continue;
    StandIns one = fullest_stand_ins(plan, shares, replicas, by);
    if (std::ranges::find(choices, one) == choices.end()) choices.push_back(std::move(one));
  }
  return choices;
}

StepRecord record_with(const RunPlan& plan, std::shared_ptr<World> world, const RuntimeComponents& own) {
  const auto notes = std::make_shared<Notes>();
  RuntimeComponents parts = with_repeated_passes(on_shapes(own, std::move(world)));
  parts.schedule_selector =
      before_each_step(parts.schedule_selector, [notes](StepContext& c) { note_begin(c, *notes); });
  RuntimeEngine engine(std::move(parts), plan);
  engine.set_finale([&](StepContext& c) { note_end(c, *notes); });
  StepRecord record{.traces = engine.fit(kSteps).traces};
  for (auto& [rank, kept] : notes->ranks) record.ranks.push_back(std::move(kept));
  record.step_ns = record.latest(&RankTime::end_ns) - record.latest(&RankTime::begin_ns);
  return record;
}

StepRecord record_slowest(const RunPlan& plan, const ShapeWorldMaker& make_world, const RuntimeComponents& own,
                          FirstStep first, const std::vector<ReplicaDocuments>& replicas) {
  const RunPlan recorded = plan_to_record(plan);
  const bool shortly = first == FirstStep::kShort && may_begin_short(recorded);
  StepRecord record;
  for (const StandIns& stand_in : choices_of_stand_ins(recorded, make_world, own, replicas)) {
    const auto record_of = [&](const RunPlan& whole) { return record_with(whole, make_world(stand_in), own); };
    StepRecord one = record_of(shortly ? with_short_first_step(recorded) : recorded);
    if (shortly && !begins_as_it_ends(one)) one = record_of(recorded);
    if (record.ranks.empty() || one.step_ns > record.step_ns) std::swap(record, one);
    if (!one.ranks.empty()) record.keep_fuller(one);  // the slowest need not be the fullest
  }
  add_what_clocks_lack(record, recorded);
  return record;
}

}  // namespace

StepRecord record_step(const RunPlan& plan, const ShapeWorldMaker& make_world, const RuntimeComponents& own,
                       FirstStep first) {
  return record_slowest(plan, make_world, own, first, {});
}

StepRecord record_step(const RunPlan& plan, const ShapeWorldMaker& make_world) {
  RuntimeComponents parts = default_parts();
  if (!plan.config.documents.reset_attention_mask) return record_step(plan, make_world, parts);
  RunPlan as_known = plan;
  std::vector<ReplicaDocuments> replicas;
  std::string unknown;
  try {
    const TrainingData data = opened_data(plan);
    replicas = replica_documents(data, plan_to_record(plan), kSteps - 1);
    parts.data_provider = provide_training_data(data);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kIo) throw;
    // A plan may be of a machine that has the data.
    as_known.config.documents.reset_attention_mask = false;
    unknown = error.what();
  }
  StepRecord record = record_slowest(as_known, make_world, parts, FirstStep::kShort, replicas);
  record.documents_unknown = unknown;
  return record;
}

}  // namespace ranklab
