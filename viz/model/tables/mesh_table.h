// Ranks, their coordinates, and the groups of every axis, from the trace; and a metric by which to colour each rank.
// Cost: O(ranks + events). Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct MeshRank {
  int global_rank = 0;
  std::vector<std::pair<Axis, int>> coordinates;  // position in the rank's group of each axis
};

struct MeshGroup {
  Axis axis = Axis::kWorld;
  std::vector<int> global_ranks;
};

struct MeshTable {
  std::vector<MeshRank> ranks;
  std::vector<Axis> axes;                              // those that have groups of more than one rank
  std::vector<MeshGroup> groups;                       // every group once, by axis and first rank
  int coordinate(size_t rank_index, Axis axis) const;  // -1: the rank has none
};

MeshTable mesh_table(const TraceStore& store);

// Indices of at most `most` ranks that represent the others: all ranks if they fit; else those of the first replica,
// since the others do the same; else the first ranks of its tensor-parallel groups; else some of these, evenly spaced.
// REQUIRES: most > 0.
std::vector<size_t> telling_ranks(const MeshTable& table, size_t most);

enum class RankMetric : uint8_t { kBusy, kBubble, kExposed, kPeerWait, kBytesSent, kPeakMemory, kEvents, kCount };
std::string_view name(RankMetric metric);  // "busy %"
struct RankValue {
  double value = 0;
  std::string text;  // with unit
};
std::vector<RankValue> rank_metric(const TraceStore& store, const Window& window, RankMetric metric);

}  // namespace ranklab::viz
