#include "core/plan/stand_ins.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "core/comm/node_members.h"
#include "core/parallel/data/update_shares.h"
#include "core/plan/step_time.h"
#include "core/runtime/replica_documents.h"
#include "core/runtime/shapes/built_rank.h"
#include "core/spec/slowest_context_rank.h"

namespace ranklab {
namespace {

// Reasons why a rank takes longest in its stage: it has the most arithmetic, or, if kernels take hardly longer than
// their launch, the most kernels; whatever it attends to, it has the most matrices to orthogonalize, or parts of
// parameters to update; its layers, replicas or pipeline exchange the most between nodes, if groups are placed
// differently on nodes; or, if attention stays within documents, its batches have the most or the longest documents.
enum class Longest { kWork, kKernels, kMatrices, kPieces, kLinks, kReplicaLinks, kPipelineLinks, kDocuments, kPairs };

bool by_links(Longest by) {
  return by == Longest::kLinks || by == Longest::kReplicaLinks || by == Longest::kPipelineLinks;
}

std::vector<AttentionOfLayers> attention_of_layers(const RunPlan& plan) {
  return attention_of_layers(plan.config.model, plan.config.context_split, plan.mesh.size(Axis::kCpHeads));
}

// The context-parallel rank whose attention takes longest; it stands for all.
int slowest_context_rank(const RunPlan& plan, Longest by) {
  return slowest_rank(plan.config.model.seq_length, plan.mesh.size(Axis::kCp), plan.config.context_split.balance,
                      attention_of_layers(plan), by == Longest::kWork ? SlowestBy::kPairs : SlowestBy::kBlocks);
}

// The context-parallel ranks that could take longest, each a choice; nullopt: any of them. Documents begin anywhere, so
// the queries of any rank may attend to the most keys.
std::vector<std::optional<int>> context_ranks(const RunPlan& plan, Longest by) {
  if (by_links(by) || by == Longest::kMatrices || by == Longest::kPieces) return {std::nullopt};
  if (by != Longest::kDocuments && by != Longest::kPairs) return {slowest_context_rank(plan, by)};
  std::vector<std::optional<int>> all;
  for (int rank = 0; rank < plan.mesh.size(Axis::kCp); ++rank) all.emplace_back(rank);
  return all;
}

// For each rank, the number of members on other nodes in the groups within its layers, or in those that share its
// gradients; or the number of nodes of its pipeline: all its ranks have the same value, so that the chosen ranks belong
// to one pipeline.
std::vector<int64_t> members_elsewhere(const RunPlan& plan, Longest by) {
  constexpr std::array kOfLayers = {Axis::kTp, Axis::kCp, Axis::kEp, Axis::kEtp};
  constexpr std::array kOfReplicas = {Axis::kDpCp,      Axis::kEdp,      Axis::kDpShard,
                                      Axis::kDpReplica, Axis::kEdpShard, Axis::kEdpReplica};
  if (by == Longest::kPipelineLinks) return nodes_of_groups(plan.mesh, Axis::kPp, plan.gpus_per_node());
  if (by == Longest::kLinks) return members_elsewhere(plan.mesh, kOfLayers, plan.gpus_per_node());
  return members_elsewhere(plan.mesh, kOfReplicas, plan.gpus_per_node());
}

// Ranks of a tensor-parallel group compute alike and have the same links within their layers. But each has its own
// replicas and pipeline, some of which span more nodes than others.
int slowest_tensor_rank(const DeviceMesh& mesh, Longest by, const std::vector<int64_t>& elsewhere) {
  if (by != Longest::kReplicaLinks && by != Longest::kPipelineLinks) return 0;
  const auto most = std::ranges::max_element(elsewhere);
  return mesh.coordinate(Axis::kTp, static_cast<int>(most - elsewhere.begin()));
}

bool alike_on_nodes(const RunPlan& plan, Longest by) {
  if (by == Longest::kPipelineLinks) return change_nodes_alike(plan.mesh, Axis::kPp, plan.gpus_per_node());
  const std::vector<int64_t> elsewhere = members_elsewhere(plan, by);
  return std::ranges::all_of(elsewhere, [&](int64_t own) { return own == elsewhere.front(); });
}

// What a rank updates, with how many members it exchanges across nodes, and what its batches attend to.
struct Share {
  UpdateShare update = {};
  int64_t elsewhere = 0;
  ReplicaDocuments documents = {};
  auto in_order(Longest by) const {
    const auto [first, second] = what_counts(by);
    return std::tuple(first, second, update.pieces, update.elements);
  }

 private:
  std::pair<double, double> what_counts(Longest by) const {
    const auto number = [](int64_t count) { return static_cast<double>(count); };
    const MatrixWork& work = update.work;
    switch (by) {
      case Longest::kWork:
        return {work.cost, number(work.matrices)};
      case Longest::kKernels:
      case Longest::kMatrices:
        return {number(work.matrices), work.cost};
      case Longest::kPieces:
        return {number(update.matrix_pieces), number(update.pieces)};
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

// Whether shards differ in work: matrices that replicas orthogonalize for each other, and rows of queries and keys that
// QK-clip scales, are in some shards and not in others.
bool shares_differ(const RunPlan& plan) {
  const TrainConfig& c = plan.config;
  const bool matrices = c.optimizer == OptimizerKind::kMuon && c.muon_distribution != MuonDistribution::kDuplicated;
  return matrices || (c.qk_clip && plan.zero().optimizer);
}

// Whether some parameters are on several ranks, which may divide their updates. Experts are also on the tensor-parallel
// ranks that do not shard them.
bool has_replicas(const RunPlan& plan) {
  return plan.replicas() > 1 || (plan.config.model.moe.enabled() && plan.mesh.size(Axis::kEdp) > 1);
}

// Whether no single rank of a stage takes as long as all its ranks together, whatever they own, because different ones
// are the slowest at different times: among ranks that exchange keys and values, in different exchanges; among replicas
// with documents of their own, in different stages and buckets; and of a padded vocabulary the last tensor-parallel
// rank has the fewest columns, but also has to mask some.
bool ranks_take_turns(const RunPlan& plan, const std::vector<ReplicaDocuments>& replicas) {
  const bool exchange = plan.mesh.size(Axis::kCp) > 1 && !attention_of_layers(plan).empty();
  return exchange || replicas.size() > 1 || plan.config.model.vocab_size % plan.mesh.size(Axis::kTp) != 0;
}

bool ranks_of_stages_differ(const RunPlan& plan, const std::vector<ReplicaDocuments>& replicas) {
  return ranks_take_turns(plan, replicas) || (has_replicas(plan) && shares_differ(plan)) ||
         std::ranges::any_of(std::array{Longest::kLinks, Longest::kReplicaLinks, Longest::kPipelineLinks},
                             [&](Longest by) { return !alike_on_nodes(plan, by); });
}

// For each rank, the rank that runs in its place: in the same stage (and, if given, with this context-parallel rank)
// the one that owns most, or the first of several. Shards have equal sizes up to padding, but different numbers of
// parameter pieces, and the rank with the most pieces takes longest. Whole matrices take longer than anything else.
StandIns fullest_stand_ins(const RunPlan& plan, const std::map<int, UpdateShares>& by_stage,
                           const std::vector<ReplicaDocuments>& replicas, Longest by, std::optional<int> context_rank) {
  const DeviceMesh& mesh = plan.mesh;
  const std::vector<int64_t> elsewhere =
      by_links(by) ? members_elsewhere(plan, by) : std::vector<int64_t>(static_cast<size_t>(mesh.world_size()));
  const int tensor_rank = slowest_tensor_rank(mesh, by, elsewhere);
  std::map<int, std::pair<Share, int>> fullest;  // by pipeline rank: the fullest share, and its rank
  StandIns stand_in;
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    if (mesh.coordinate(Axis::kTp, rank) != tensor_rank) continue;
    if (context_rank && mesh.coordinate(Axis::kCp, rank) != *context_rank) continue;
    const int pp_rank = mesh.coordinate(Axis::kPp, rank);
    Share own{.elsewhere = elsewhere[static_cast<size_t>(rank)]};
    if (by_stage.contains(pp_rank)) own.update = share_of(rank, mesh, by_stage.at(pp_rank));
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
  const bool work_is_pieces = !muon && plan.mesh.size(Axis::kCp) == 1;  // kWork then chooses the same rank
  std::map<int, UpdateShares> shares;
  if ((plan.zero().optimizer || muon) && has_replicas(plan)) {
    std::mutex mutex;
    build_ranks(plan, on_shapes(parts, make_world(first_stand_ins(plan))), [&](StepContext& c) {
      const std::lock_guard lock(mutex);
      shares[c.ctx.coordinate(Axis::kPp)] = update_shares(c.optimizer.grad_buckets());
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
  if (!may_run_all || !ranks_of_stages_differ(plan, replicas))
    choices = choices_of_stand_ins(plan, make_world, parts, replicas);
  if (choices.size() == 1 || !may_run_all) return choices;
  StandIns themselves(static_cast<size_t>(plan.mesh.world_size()));
  std::iota(themselves.begin(), themselves.end(), 0);
  return {std::move(themselves)};
}

}  // namespace ranklab
