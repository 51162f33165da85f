#include "core/plan/zero_map.h"

#include <map>

#include "core/base/text.h"

namespace ranklab {
namespace {

struct Pieces {
  std::vector<PlannedParameter> parameters;
  std::vector<PlannedBucket> buckets;
};

Pieces plan_pieces(const RunPlan& plan, int pp_rank, int ep_rank) {
  const StepShape shape = shape_of(plan);
  Pieces out{.parameters = planned_parameters(shape, plan.schedule, pp_rank, ep_rank), .buckets = {}};
  out.buckets = planned_buckets(shape, out.parameters);
  return out;
}

ZeroMapBucket map_bucket(const PlannedBucket& bucket, const std::vector<PlannedParameter>& parameters) {
  ZeroMapBucket out{.axis = bucket.axis,
                    .shards = bucket.shards,
                    .unit = bucket.layout.unit,
                    .elements = bucket.elements(),
                    .padding = bucket.layout.padding(),
                    .rows = {}};
  std::map<size_t, size_t> row_of;
  for (const BucketPlace& place : bucket.layout.places) {
    row_of[place.item] = out.rows.size();
    out.rows.push_back({.parameter = parameters[place.item].name, .elements = place.elements, .owners = {}});
  }
  for (int shard = 0; shard < bucket.shards; ++shard) {
    for (const ShardPiece& piece : pieces_of(bucket.layout, bucket.shards, shard))
      out.rows[row_of.at(piece.item)].owners.push_back({.group_rank = shard, .begin = piece.begin, .end = piece.end});
  }
  return out;
}

// A coordinate of a rank; without that axis 0.
int coordinate(const RunPlan& plan, Axis axis, int global_rank) {
  return plan.mesh.size(axis) == 1 ? 0 : plan.mesh.coordinate(axis, global_rank);
}

int shard_of(const RunPlan& plan, const PlannedBucket& bucket, int global_rank) {
  return bucket.shards == 1 ? 0 : coordinate(plan, bucket.axis, global_rank);
}

ZeroMapRank holdings(const RunPlan& plan, const std::vector<PlannedBucket>& buckets, int global_rank) {
  const StateTypes types = state_types(plan);
  ZeroMapRank out{.dp_rank = coordinate(plan, Axis::kDp, global_rank)};
  for (const PlannedBucket& bucket : buckets) {
    for (const ShardPiece& piece : pieces_of(bucket.layout, bucket.shards, shard_of(plan, bucket, global_rank))) {
      out.elements += piece.elements();
      out.optimizer_bytes += piece.elements() * types.optimizer_bytes();
    }
    out.gradient_bytes += plan.zero_stage >= 2 ? bucket.shard_bytes() : bucket.bytes();
    const int64_t padding = bucket.layout.padding() * types.param_bytes();
    out.parameter_bytes += plan.zero_stage == 3 ? bucket.parameter_shard_bytes() : bucket.parameter_bytes() - padding;
  }
  return out;
}

}  // namespace

ZeroMap zero_map(const RunPlan& plan, int pp_rank) {
  const Pieces pieces = plan_pieces(plan, pp_rank, 0);
  ZeroMap map{.stage = plan.zero_stage, .pp_rank = pp_rank, .buckets = {}, .ranks = {}};
  for (const PlannedBucket& bucket : pieces.buckets) map.buckets.push_back(map_bucket(bucket, pieces.parameters));
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
    const bool shown = coordinate(plan, Axis::kPp, rank) == pp_rank && coordinate(plan, Axis::kTp, rank) == 0;
    if (shown) map.ranks.push_back(holdings(plan, pieces.buckets, rank));
  }
  return map;
}

std::vector<std::string> zero_debug_lines(const RunPlan& plan) {
  std::vector<std::string> lines;
  std::map<std::pair<int, int>, Pieces> planned;  // by pp and ep rank
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
    const int pp_rank = coordinate(plan, Axis::kPp, rank), ep_rank = coordinate(plan, Axis::kEp, rank);
    const auto [found, is_new] = planned.try_emplace({pp_rank, ep_rank});
    if (is_new) found->second = plan_pieces(plan, pp_rank, ep_rank);
    const Pieces& pieces = found->second;
    for (const PlannedBucket& bucket : pieces.buckets) {
      const int shard = shard_of(plan, bucket, rank);
      for (const ShardPiece& piece : pieces_of(bucket.layout, bucket.shards, shard)) {
        const PlannedParameter& parameter = pieces.parameters[piece.item];
        lines.push_back(
            strprintf("[ZeRO Debug][rank=%d] param[%zu] %s %s numel=%ld shard=[%ld:%ld) group_size=%d group_rank=%d",
                      rank, piece.item, parameter.name.c_str(), std::string(name(bucket.axis)).c_str(),
                      static_cast<long>(parameter.elements), static_cast<long>(piece.begin),
                      static_cast<long>(piece.end), bucket.shards, shard));
      }
    }
  }
  return lines;
}

}  // namespace ranklab
