#include "core/runtime/shapes/zero_map.h"

#include <map>
#include <utility>

#include "core/base/text.h"
#include "core/config/state_types.h"
#include "core/runtime/components.h"
#include "core/runtime/shapes/built_rank.h"

namespace ranklab {
namespace {

int shard_of(const RunPlan& plan, const GradBucket& bucket, int global_rank) {
  return bucket.shards == 1 ? 0 : plan.mesh.coordinate(bucket.axis, global_rank);
}

std::vector<ShardPiece> owned_pieces(const RunPlan& plan, const GradBucket& bucket, int global_rank) {
  return pieces_of(bucket.layout, bucket.shards, shard_of(plan, bucket, global_rank));
}

ZeroMapBucket map_bucket(const GradBucket& bucket) {
  ZeroMapBucket out{.axis = bucket.axis,
                    .shards = bucket.shards,
                    .unit = bucket.layout.unit,
                    .elements = bucket.layout.elements,
                    .padding = bucket.layout.padding(),
                    .rows = {}};
  std::map<size_t, size_t> row_of;
  for (const BucketPlace& place : bucket.layout.places) {
    row_of[place.item] = out.rows.size();
    out.rows.push_back({.parameter = bucket.parameters[place.item]->name, .elements = place.elements, .owners = {}});
  }
  for (int shard = 0; shard < bucket.shards; ++shard) {
    for (const ShardPiece& piece : pieces_of(bucket.layout, bucket.shards, shard))
      out.rows[row_of.at(piece.item)].owners.push_back({.group_rank = shard, .begin = piece.begin, .end = piece.end});
  }
  return out;
}

ZeroMapRank holdings(const RunPlan& plan, const std::vector<GradBucket>& buckets, int global_rank) {
  const StateTypes types = state_types(plan);
  ZeroMapRank out{.dp_rank = plan.mesh.coordinate(Axis::kDp, global_rank),
                  .group_rank = plan.mesh.group(Axis::kDpCp, global_rank).group_rank};
  for (const GradBucket& bucket : buckets) {
    for (const ShardPiece& piece : owned_pieces(plan, bucket, global_rank)) {
      out.elements += piece.elements();
      out.optimizer_bytes += piece.elements() * types.optimizer_bytes(bucket.parameters[piece.item]->hidden_matrix);
    }
    const int64_t elements = bucket.layout.elements;
    out.gradient_bytes += bucket.layout.bytes() / (plan.zero().gradients ? bucket.shards : 1);
    out.parameter_bytes +=
        (plan.zero().parameters ? elements / bucket.shards : elements - bucket.layout.padding()) * types.param_bytes();
  }
  return out;
}

// For a rank that has these buckets. `number` gives each parameter's index among the rank's parameters.
std::vector<std::string> debug_lines(const RunPlan& plan, const std::vector<GradBucket>& buckets,
                                     const std::map<const Parameter*, size_t>& number, int global_rank) {
  std::vector<std::string> lines;
  for (const GradBucket& bucket : buckets) {
    for (const ShardPiece& piece : owned_pieces(plan, bucket, global_rank)) {
      const Parameter* parameter = bucket.parameters[piece.item];
      lines.push_back(
          strprintf("[ZeRO Debug][rank=%d] param[%zu] %s %s numel=%ld shard=[%ld:%ld) group_size=%d group_rank=%d",
                    global_rank, number.at(parameter), parameter->name.c_str(), std::string(name(bucket.axis)).c_str(),
                    static_cast<long>(parameter->data.numel()), static_cast<long>(piece.begin),
                    static_cast<long>(piece.end), bucket.shards, shard_of(plan, bucket, global_rank)));
    }
  }
  return lines;
}

}  // namespace

ZeroMap zero_map(const RunPlan& plan, int pp_rank, const ShapeWorldMaker& make_world) {
  ZeroMap map;
  std::vector<int> ranks;
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank)
    if (plan.mesh.coordinate(Axis::kPp, rank) == pp_rank && plan.mesh.coordinate(Axis::kTp, rank) == 0)
      ranks.push_back(rank);
  build_rank(plan, ranks.front(), make_world, [&](StepContext& c) {
    const std::vector<GradBucket> buckets = c.optimizer.grad_buckets();
    for (const int rank : ranks) map.ranks.push_back(holdings(plan, buckets, rank));
    for (const GradBucket& bucket : buckets) map.buckets.push_back(map_bucket(bucket));
  });
  return map;
}

std::vector<std::string> zero_debug_lines(const RunPlan& plan, const ShapeWorldMaker& make_world) {
  std::map<std::pair<int, int>, std::vector<int>> alike;  // ranks with the same pp and ep rank
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank)
    alike[{plan.mesh.coordinate(Axis::kPp, rank), plan.mesh.coordinate(Axis::kEp, rank)}].push_back(rank);
  std::map<int, std::vector<std::string>> by_rank;
  for (const auto& [place, ranks] : alike) {
    build_rank(plan, ranks.front(), make_world, [&, &ranks = ranks](StepContext& c) {
      const std::vector<GradBucket> buckets = c.optimizer.grad_buckets();
      std::map<const Parameter*, size_t> number;
      for (const Parameter* parameter : c.model.registry().parameters()) number.emplace(parameter, number.size());
      for (const int rank : ranks) by_rank[rank] = debug_lines(plan, buckets, number, rank);
    });
  }
  std::vector<std::string> lines;
  for (const auto& [rank, own] : by_rank) lines.insert(lines.end(), own.begin(), own.end());
  return lines;
}

}  // namespace ranklab
