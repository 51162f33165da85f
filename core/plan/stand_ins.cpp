#include "core/plan/stand_ins.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/comm/node_members.h"
#include "core/plan/built_rank.h"
#include "core/plan/replica_documents.h"
#include "core/plan/step_time.h"

namespace ranklab {
namespace {

// Which rank of a stage takes longest: the one with the most arithmetic, or, where kernels take hardly longer than
// their launch, the one with the most of them; or the one with the most matrices to orthogonalize, or parts of
// parameters to update, whatever it attends to; or the one whose layers, replicas or pipeline exchange most between
// nodes, where groups do not lie alike on them; or, where attention keeps within documents, the one whose batches have
// the most or the longest.
enum class Longest { kWork, kKernels, kMatrices, kPieces, kLinks, kReplicaLinks, kPipelineLinks, kDocuments, kPairs };

bool by_links(Longest by) {
  return by == Longest::kLinks || by == Longest::kReplicaLinks || by == Longest::kPipelineLinks;
}

// Ranks that exchanged heads have all positions, and are alike.
std::vector<AttentionOfLayers> attention_of_layers(const RunPlan& plan) {
  const ContextSplit& split = plan.config.context_split;
  const ModelConfig& model = plan.config.model;
  std::map<std::tuple<ContextExchange, int64_t, int64_t>, int64_t> alike;  // by exchange, window and chunk
  for (int64_t layer = 0; layer < model.num_layers; ++layer)
    ++alike[{split.of_layer(layer), model.window_of_layer(layer), model.chunk_of_layer(layer)}];
  std::vector<AttentionOfLayers> all;
  for (const auto& [kind, layers] : alike) {
    const auto [exchange, window, chunk] = kind;
    if (exchange == ContextExchange::kAllToAll) continue;
    all.push_back({.window = window,
                   .chunk = chunk,
                   .layers = layers,
                   // Gathered latents are attended to rank after rank.
                   .in_order = exchange == ContextExchange::kAllGather && !model.mla.enabled(),
                   .joined = exchange == ContextExchange::kAllToAllP2p ? plan.mesh.size(Axis::kCpHeads) : 1});
  }
  return all;
}

// The context-parallel rank that takes longest to attend stands for all.
int slowest_context_rank(const RunPlan& plan, Longest by) {
  return slowest_rank(plan.config.model.seq_length, plan.mesh.size(Axis::kCp), plan.config.context_split.balance,
                      attention_of_layers(plan), by == Longest::kWork ? SlowestBy::kPairs : SlowestBy::kBlocks);
}

// The context-parallel ranks of which one may take longest, each a choice; nullopt: whichever it is. Documents begin
// anywhere, so that the queries of any rank may see most of them.
std::vector<std::optional<int>> context_ranks(const RunPlan& plan, Longest by) {
  if (by_links(by) || by == Longest::kMatrices || by == Longest::kPieces) return {std::nullopt};
  if (by != Longest::kDocuments && by != Longest::kPairs) return {slowest_context_rank(plan, by)};
  std::vector<std::optional<int>> all;
  for (int rank = 0; rank < plan.mesh.size(Axis::kCp); ++rank) all.emplace_back(rank);
  return all;
}

// For each rank on how many nodes its pipeline lies. All ranks of a pipeline have the same, so that those of one are
// chosen.
std::vector<int64_t> nodes_of_pipelines(const RunPlan& plan) {
  std::vector<int64_t> elsewhere(static_cast<size_t>(plan.mesh.world_size()), 0);
  for (const Group& pipeline : plan.mesh.groups(Axis::kPp)) {
    const auto nodes = static_cast<int64_t>(members_of_nodes(pipeline, plan.gpus_per_node()).size());
    for (const int rank : pipeline.global_ranks) elsewhere[static_cast<size_t>(rank)] = nodes;
  }
  return elsewhere;
}

// For each rank the members of the groups within its layers, or of those that share its gradients, that are on other
// nodes; or the nodes of its pipeline.
std::vector<int64_t> members_elsewhere(const RunPlan& plan, Longest by) {
  if (by == Longest::kPipelineLinks) return nodes_of_pipelines(plan);
  const std::vector<Axis> of_layers = {Axis::kTp, Axis::kCp, Axis::kEp, Axis::kEtp};
  const std::vector<Axis> of_replicas = {Axis::kDpCp,      Axis::kEdp,      Axis::kDpShard,
                                         Axis::kDpReplica, Axis::kEdpShard, Axis::kEdpReplica};
  std::vector<int64_t> elsewhere(static_cast<size_t>(plan.mesh.world_size()), 0);
  for (const Axis axis : by == Longest::kLinks ? of_layers : of_replicas) {
    if (plan.mesh.size(axis) == 1) continue;
    for (const Group& group : plan.mesh.groups(axis)) {
      const std::map<int, int64_t> here = members_of_nodes(group, plan.gpus_per_node());
      for (const int rank : group.global_ranks)
        elsewhere[static_cast<size_t>(rank)] += group.size() - here.at(rank / plan.gpus_per_node());
    }
  }
  return elsewhere;
}

// Ranks of a tensor-parallel group compute alike, and have the same links within their layers. But each has replicas
// and a pipeline of its own, of which some lie on more nodes than others.
int slowest_tensor_rank(const DeviceMesh& mesh, Longest by, const std::vector<int64_t>& elsewhere) {
  if (by != Longest::kReplicaLinks && by != Longest::kPipelineLinks) return 0;
  const auto most = std::ranges::max_element(elsewhere);
  return mesh.coordinate(Axis::kTp, static_cast<int>(most - elsewhere.begin()));
}

// Whether each stage sends to the same node or another in all pipelines.
bool pipelines_alike_on_nodes(const RunPlan& plan) {
  std::set<std::vector<bool>> patterns;
  for (const Group& pipeline : plan.mesh.groups(Axis::kPp)) {
    std::vector<bool> between;
    for (size_t stage = 1; stage < pipeline.global_ranks.size(); ++stage)
      between.push_back(pipeline.global_ranks[stage] / plan.gpus_per_node() !=
                        pipeline.global_ranks[stage - 1] / plan.gpus_per_node());
    patterns.insert(std::move(between));
  }
  return patterns.size() <= 1;
}

bool alike_on_nodes(const RunPlan& plan, Longest by) {
  if (by == Longest::kPipelineLinks) return pipelines_alike_on_nodes(plan);
  const std::vector<int64_t> elsewhere = members_elsewhere(plan, by);
  return std::ranges::all_of(elsewhere, [&](int64_t own) { return own == elsewhere.front(); });
}

// What one member of a bucket's group updates: its work with whole matrices, the number of parameter pieces, of those
// that are parts of matrices, and the sum of elements. And with how many it exchanges between nodes, and what its
// batches attend to.
struct Share {
  MatrixWork work = {};
  int64_t pieces = 0, matrix_pieces = 0, elements = 0, elsewhere = 0;
  ReplicaDocuments documents = {};
  auto in_order(Longest by) const {
    const auto [first, second] = what_counts(by);
    return std::tuple(first, second, pieces, elements);
  }

 private:
  std::pair<double, double> what_counts(Longest by) const {
    const auto number = [](int64_t count) { return static_cast<double>(count); };
    switch (by) {
      case Longest::kWork:
        return {work.cost, number(work.matrices)};
      case Longest::kKernels:
      case Longest::kMatrices:
        return {number(work.matrices), work.cost};
      case Longest::kPieces:
        return {number(matrix_pieces), number(pieces)};
      case Longest::kLinks:
      case Longest::kReplicaLinks:
      case Longest::kPipelineLinks:
        return {number(elsewhere), work.cost};
      case Longest::kDocuments:
        return {number(documents.count), work.cost};
      case Longest::kPairs:
        return {number(documents.pairs), work.cost};
    }
    return {};
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
        Share& own = members[static_cast<size_t>(member)];
        ++own.pieces;
        if (!bucket.work.empty()) ++own.matrix_pieces;
        own.elements += piece.elements();
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
    own.matrix_pieces += share.matrix_pieces;
    own.elements += share.elements;
  }
  return own;
}

// Matrices that replicas orthogonalize for each other, and rows of queries and keys that QK-clip scales, lie in some
// shards and not in others.
bool shares_differ(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  const bool matrices = c.optimizer == OptimizerKind::kMuon && c.muon_distribution != MuonDistribution::kDuplicated;
  return matrices || (c.qk_clip && plan.zero().optimizer);
}

// Whether, whatever the ranks of a stage own, no single one of them takes as long as all together.
bool ranks_of_stages_differ(const RunPlan& plan) {
  // Of ranks that exchange keys and values one is the slowest in one exchange, another in the next.
  const bool take_turns = plan.mesh.size(Axis::kCp) > 1 && !attention_of_layers(plan).empty();
  return take_turns || (plan.replicas() > 1 && shares_differ(plan)) ||
         std::ranges::any_of(std::array{Longest::kLinks, Longest::kReplicaLinks, Longest::kPipelineLinks},
                             [&](Longest by) { return !alike_on_nodes(plan, by); });
}

// For each rank the one that runs in its place: of its stage, and of a context-parallel rank if one is given, the one
// that owns most, the first of several. Shards are
// equal up to padding, but not the number of parameter pieces in them: the rank with the most pieces takes longest.
// Whole matrices take longer than any of it.
StandIns fullest_stand_ins(const RunPlan& plan, const std::map<int, Shares>& by_stage,
                           const std::vector<ReplicaDocuments>& replicas, Longest by, std::optional<int> context_rank) {
  const DeviceMesh& mesh = plan.mesh;
  const std::vector<int64_t> elsewhere =
      by_links(by) ? members_elsewhere(plan, by) : std::vector<int64_t>(static_cast<size_t>(mesh.world_size()));
  const int tensor_rank = slowest_tensor_rank(mesh, by, elsewhere);
  std::map<int, std::pair<Share, int>> fullest;  // and its rank, by pipeline rank
  StandIns stand_in;
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    if (mesh.coordinate(Axis::kTp, rank) != tensor_rank) continue;
    if (context_rank && mesh.coordinate(Axis::kCp, rank) != *context_rank) continue;
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

}  // namespace

StandIns first_stand_ins(const RunPlan& plan) {
  return fullest_stand_ins(plan, {}, {}, Longest::kWork, slowest_context_rank(plan, Longest::kWork));
}

std::vector<StandIns> choices_of_stand_ins(const RunPlan& plan, const ShapeWorldMaker& make_world,
                                           const RuntimeComponents& parts,
                                           const std::vector<ReplicaDocuments>& replicas) {
  const bool muon = plan.config.optimizer == OptimizerKind::kMuon;
  const bool work_is_pieces = !muon && plan.mesh.size(Axis::kCp) == 1;  // kWork chooses the same
  std::map<int, Shares> shares;
  if ((plan.zero().optimizer || muon) && plan.replicas() > 1) {
    std::mutex mutex;
    build_ranks(plan, on_shapes(parts, make_world(first_stand_ins(plan))), [&](StepContext& c) {
      const std::lock_guard lock(mutex);
      shares[c.ctx.coordinate(Axis::kPp)] = shares_of(c.optimizer.grad_buckets());
    });
  }
  std::vector<StandIns> choices;
  for (const Longest by : {Longest::kWork, Longest::kKernels, Longest::kMatrices, Longest::kPieces, Longest::kLinks,
                           Longest::kReplicaLinks, Longest::kPipelineLinks, Longest::kDocuments, Longest::kPairs}) {
    if (by == Longest::kMatrices && !muon) continue;
    if (by == Longest::kPieces && (shares.empty() || work_is_pieces)) continue;
    if (by_links(by) && alike_on_nodes(plan, by)) continue;
    const bool by_documents = by == Longest::kDocuments || by == Longest::kPairs;
    const bool by_attention = by == Longest::kWork || by == Longest::kKernels;
    if (replicas.empty() ? by_documents : by_attention) continue;
    for (const std::optional<int> context_rank : context_ranks(plan, by)) {
      StandIns one = fullest_stand_ins(plan, shares, replicas, by, context_rank);
      if (std::ranges::find(choices, one) == choices.end()) choices.push_back(std::move(one));
    }
  }
  return choices;
}

std::vector<StandIns> stand_ins_to_record(const RunPlan& plan, const ShapeWorldMaker& make_world,
                                          const RuntimeComponents& parts,
                                          const std::vector<ReplicaDocuments>& replicas) {
  std::vector<StandIns> choices;
  const bool may_run_all = may_run_all_ranks(plan);
  if (!may_run_all || !ranks_of_stages_differ(plan)) choices = choices_of_stand_ins(plan, make_world, parts, replicas);
  if (choices.size() == 1 || !may_run_all) return choices;
  StandIns themselves(static_cast<size_t>(plan.mesh.world_size()));
  std::iota(themselves.begin(), themselves.end(), 0);
  return {std::move(themselves)};
}

}  // namespace ranklab
