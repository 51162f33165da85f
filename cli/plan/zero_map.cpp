#include "cli/plan/zero_map.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "backends/meta/meta_world.h"
#include "cli/common/json_output.h"
#include "cli/common/model_text.h"
#include "cli/common/pipeline_text.h"
#include "cli/common/style.h"
#include "core/base/text.h"
#include "core/runtime/shapes/zero_map.h"

namespace ranklab {
namespace {

std::string byte_count(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

std::string headline(const RunPlan& plan, const ZeroMapRequest& request) {
  std::string text = strprintf("%s: ZeRO stage %d, %s; %s", model_name(plan.config).c_str(), plan.zero_stage,
                               std::string(plan.zero().effect).c_str(), replicas_text(plan).c_str());
  if (plan.config.model.moe.enabled()) text += strprintf(", experts edp %d", plan.mesh.size(Axis::kEdp));
  if (plan.dp() < plan.mesh.world_size()) text += "; of " + layout_text(plan, false);
  return text + request.layout_note;
}

// "0 [0:11008)  1 [11008:22016)"; of many owners only the first ones
std::string owners_text(const ZeroMapRow& row, bool all) {
  constexpr size_t kShown = 4;
  const size_t shown = all ? row.owners.size() : std::min(row.owners.size(), kShown);
  std::string text;
  for (size_t i = 0; i < shown; ++i) {
    const OwnedRange& owner = row.owners[i];
    text += strprintf("  %d [%ld:%ld)", owner.group_rank, static_cast<long>(owner.begin), static_cast<long>(owner.end));
  }
  if (shown < row.owners.size()) text += strprintf("  and %zu more", row.owners.size() - shown);
  return text;
}

std::string bucket_text(const RunPlan& plan, const ZeroMap& map, size_t index, const Style& style, bool all) {
  const ZeroMapBucket& bucket = map.buckets[index];
  const int64_t shard = bucket.elements / bucket.shards;
  std::string text =
      style.bold(strprintf("  bucket %zu%s: %ld elements over %s %d, %ld of them padding; a shard %ld (%s)", index,
                           bucket.unit.empty() ? "" : (", " + bucket.unit).c_str(), static_cast<long>(bucket.elements),
                           std::string(name(bucket.axis)).c_str(), bucket.shards, static_cast<long>(bucket.padding),
                           static_cast<long>(shard), byte_count(shard * plan.config.element_bytes()).c_str()));
  text += "\n";
  int widest = 0;
  for (const ZeroMapRow& row : bucket.rows) widest = std::max(widest, static_cast<int>(row.parameter.size()));
  for (const ZeroMapRow& row : bucket.rows)
    text += strprintf("    %-*s %10ld", widest, row.parameter.c_str(), static_cast<long>(row.elements)) +
            owners_text(row, all) + "\n";
  return text;
}

std::string ranks_text(const RunPlan& plan, const ZeroMap& map, bool all) {
  constexpr size_t kShown = 16;
  const bool contexts = plan.mesh.size(Axis::kCp) > 1;
  std::string text = strprintf("    %7s", contexts ? "dp x cp" : "dp rank") +
                     "  elements updated  parameters  gradients after backward   optimizer  bytes each\n";
  const size_t shown = all ? map.ranks.size() : std::min(map.ranks.size(), kShown);
  int64_t whole = 0;
  for (const ZeroMapBucket& bucket : map.buckets) whole += bucket.elements - bucket.padding;
  for (size_t i = 0; i < shown; ++i) {
    const ZeroMapRank& rank = map.ranks[i];
    const auto all_bytes = static_cast<double>(rank.parameter_bytes + rank.gradient_bytes + rank.optimizer_bytes);
    text += strprintf("    %7d  %16ld  %10s  %24s  %10s  %10.2f\n", rank.group_rank, static_cast<long>(rank.elements),
                      byte_count(rank.parameter_bytes).c_str(), byte_count(rank.gradient_bytes).c_str(),
                      byte_count(rank.optimizer_bytes).c_str(), all_bytes / static_cast<double>(whole));
  }
  if (shown < map.ranks.size()) text += strprintf("    and %zu more (--all)\n", map.ranks.size() - shown);
  return text;
}

nlohmann::ordered_json bucket_json(const ZeroMapBucket& bucket) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const ZeroMapRow& row : bucket.rows) {
    nlohmann::ordered_json owners = nlohmann::ordered_json::array();
    for (const OwnedRange& owner : row.owners)
      owners.push_back({{"group_rank", owner.group_rank}, {"begin", owner.begin}, {"end", owner.end}});
    rows.push_back({{"parameter", row.parameter}, {"elements", row.elements}, {"owners", owners}});
  }
  return {{"unit", bucket.unit},         {"axis", name(bucket.axis)}, {"shards", bucket.shards},
          {"elements", bucket.elements}, {"padding", bucket.padding}, {"parameters", rows}};
}

std::string map_text(const RunPlan& plan, const Style& style, const ZeroMapRequest& request) {
  std::string text = headline(plan, request) + "\n";
  for (int pp_rank = 0; pp_rank < plan.mesh.size(Axis::kPp); ++pp_rank) {
    const ZeroMap map = zero_map(plan, pp_rank, make_meta_world);
    if (plan.mesh.size(Axis::kPp) > 1) text += style.bold(strprintf("pipeline rank %d", pp_rank)) + "\n";
    for (size_t bucket = 0; bucket < map.buckets.size(); ++bucket)
      text += bucket_text(plan, map, bucket, style, request.all);
    text += ranks_text(plan, map, request.all);
  }
  return text;
}

std::string map_json(const RunPlan& plan) {
  nlohmann::ordered_json stages = nlohmann::ordered_json::array();
  for (int pp_rank = 0; pp_rank < plan.mesh.size(Axis::kPp); ++pp_rank) {
    const ZeroMap map = zero_map(plan, pp_rank, make_meta_world);
    nlohmann::ordered_json buckets = nlohmann::ordered_json::array(), ranks = nlohmann::ordered_json::array();
    for (const ZeroMapBucket& bucket : map.buckets) buckets.push_back(bucket_json(bucket));
    for (const ZeroMapRank& rank : map.ranks) {
      ranks.push_back({{"dp_rank", rank.dp_rank},
                       {"group_rank", rank.group_rank},
                       {"elements", rank.elements},
                       {"parameter_bytes", rank.parameter_bytes},
                       {"gradient_bytes", rank.gradient_bytes},
                       {"optimizer_bytes", rank.optimizer_bytes}});
    }
    stages.push_back({{"pp_rank", pp_rank}, {"buckets", buckets}, {"ranks", ranks}});
  }
  return json_result({{"preset", plan.config.preset},
                      {"zero_stage", plan.zero_stage},
                      {"dp", plan.dp()},
                      {"edp", plan.mesh.size(Axis::kEdp)},
                      {"element_bytes", plan.config.element_bytes()},
                      {"pipeline_ranks", stages}});
}

}  // namespace

int run_zero_map(const RunPlan& plan, const ZeroMapRequest& request) {
  const std::string text = request.json ? map_json(plan) : map_text(plan, style_for(stdout), request);
  std::fputs(text.c_str(), stdout);
  return 0;
}

}  // namespace ranklab
