#include "core/plan/zero_map.h"

#include <map>
#include <utility>

#include "core/base/text.h"
#include "core/config/state_types.h"
#include "core/plan/built_rank.h"
#include "core/runtime/components.h"

namespace ranklab {
namespace {

// A bucket of a rank, independent of its model.
struct RankBucket {
  Axis axis = Axis::kDp;
  int shards = 1;
  BucketLayout layout;
  struct Item {
    std::string name;
    int64_t elements = 0;  // on this rank
    size_t number = 0;     // among the rank's parameters
    bool hidden_matrix = false;
  };
  std::map<size_t, Item> items = {};  // of the layout's places
};

std::vector<RankBucket> buckets_of(const RunPlan& plan, int global_rank, const ShapeWorldMaker& make_world) {
  std::vector<RankBucket> out;
  build_rank(plan, global_rank, make_world, [&](StepContext& c) {
    std::map<const Parameter*, size_t> number;
    for (const Parameter* parameter : c.model.registry().parameters()) number.emplace(parameter, number.size());
    for (const GradBucket& bucket : c.optimizer.grad_buckets()) {
      RankBucket& own =
          out.emplace_back(RankBucket{.axis = bucket.axis, .shards = bucket.shards, .layout = bucket.layout});
      for (const BucketPlace& place : bucket.layout.places) {
        const Parameter* parameter = bucket.parameters[place.item];
        own.items[place.item] = {parameter->name, parameter->data.numel(), number.at(parameter),
                                 parameter->hidden_matrix};
      }
    }
  });
  return out;
}

ZeroMapBucket map_bucket(const RankBucket& bucket) {
  ZeroMapBucket out{.axis = bucket.axis,
                    .shards = bucket.shards,
                    .unit = bucket.layout.unit,
                    .elements = bucket.layout.elements,
                    .padding = bucket.layout.padding(),
                    .rows = {}};
  std::map<size_t, size_t> row_of;
  for (const BucketPlace& place : bucket.layout.places) {
    row_of[place.item] = out.rows.size();
    out.rows.push_back({.parameter = bucket.items.at(place.item).name, .elements = place.elements, .owners = {}});
  }
  for (int shard = 0; shard < bucket.shards; ++shard) {
    for (const ShardPiece& piece : pieces_of(bucket.layout, bucket.shards, shard))
      out.rows[row_of.at(piece.item)].owners.push_back({.group_rank = shard, .begin = piece.begin, .end = piece.end});
  }
  return out;
}

int shard_of(const RunPlan& plan, const RankBucket& bucket, int global_rank) {
  return bucket.shards == 1 ? 0 : plan.mesh.coordinate(bucket.axis, global_rank);
}

ZeroMapRank holdings(const RunPlan& plan, const std::vector<RankBucket>& buckets, int global_rank) {
  const StateTypes types = state_types(plan);
  ZeroMapRank out{.dp_rank = plan.mesh.coordinate(Axis::kDp, global_rank)};
  for (const RankBucket& bucket : buckets) {
    for (const ShardPiece& piece : pieces_of(bucket.layout, bucket.shards, shard_of(plan, bucket, global_rank))) {
      out.elements += piece.elements();
      out.optimizer_bytes += piece.elements() * types.optimizer_bytes(bucket.items.at(piece.item).hidden_matrix);
    }
    const int64_t elements = bucket.layout.elements;
    out.gradient_bytes += bucket.layout.bytes() / (plan.zero().gradients ? bucket.shards : 1);
    out.parameter_bytes +=
        (plan.zero().parameters ? elements / bucket.shards : elements - bucket.layout.padding()) * types.param_bytes();
  }
  return out;
}

}  // namespace

ZeroMap zero_map(const RunPlan& plan, int pp_rank, const ShapeWorldMaker& make_world) {
  ZeroMap map{.stage = plan.zero_stage, .pp_rank = pp_rank, .buckets = {}, .ranks = {}};
  std::vector<RankBucket> buckets;
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
    if (plan.mesh.coordinate(Axis::kPp, rank) != pp_rank || plan.mesh.coordinate(Axis::kTp, rank) != 0) continue;
    if (buckets.empty()) buckets = buckets_of(plan, rank, make_world);
    map.ranks.push_back(holdings(plan, buckets, rank));
  }
  for (const RankBucket& bucket : buckets) map.buckets.push_back(map_bucket(bucket));
  return map;
}

std::vector<std::string> zero_debug_lines(const RunPlan& plan, const ShapeWorldMaker& make_world) {
  std::vector<std::string> lines;
  std::map<std::pair<int, int>, std::vector<RankBucket>> built;  // by pp and ep rank
  for (int rank = 0; rank < plan.mesh.world_size(); ++rank) {
    const auto [found, is_new] =
        built.try_emplace({plan.mesh.coordinate(Axis::kPp, rank), plan.mesh.coordinate(Axis::kEp, rank)});
    if (is_new) found->second = buckets_of(plan, rank, make_world);
    for (const RankBucket& bucket : found->second) {
      const int shard = shard_of(plan, bucket, rank);
      for (const ShardPiece& piece : pieces_of(bucket.layout, bucket.shards, shard)) {
        const RankBucket::Item& item = bucket.items.at(piece.item);
        lines.push_back(strprintf(
            "[ZeRO Debug][rank=%d] param[%zu] %s %s numel=%ld shard=[%ld:%ld) group_size=%d group_rank=%d", rank,
            item.number, item.name.c_str(), std::string(name(bucket.axis)).c_str(), static_cast<long>(item.elements),
            static_cast<long>(piece.begin), static_cast<long>(piece.end), bucket.shards, shard));
      }
    }
  }
  return lines;
}

}  // namespace ranklab
