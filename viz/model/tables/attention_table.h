// Which blocks of queries and keys each context-parallel rank computes, and when, from the events of
// core/trace/attention_event.h, and how even the work is. Work is counted in pairs of a query and a key that it attends
// to. Cost: O(events of the window x log events). Thread rule: pure.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/trace/attention_event.h"
#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

constexpr int64_t kMostChunks = 512;  // limit for a damaged file

// A cell of the grid, computed by one rank. Cells of one hop share their event.
struct AttentionTile {
  int query = 0, key = 0;  // chunk indices
  double pairs = 0;
  TimeRange range;
  EventRef event;

  bool done(int64_t time_ns) const { return range.end_ns <= time_ns; }
  bool runs(int64_t time_ns) const { return range.begin_ns <= time_ns && time_ns < range.end_ns; }
};

// One layer's attention of one microbatch, forward or backward, on the ranks of a group.
struct AttentionUse {
  AttentionPass pass = AttentionPass::kForward;
  int step = -1, microbatch = -1;
  std::string module;  // "layers.3.attention"; "" if modules were not recorded
  int64_t positions = 0;
  int chunks = 0;                                 // 1: each rank has part of the heads and attends to whole sequences
  bool striped = false;                           // a chunk consists of every chunks-th position
  TimeRange range;                                // over all ranks
  std::vector<std::vector<AttentionTile>> tiles;  // [member]

  bool by_heads() const { return chunks == 1; }
  // The number of ranks that compute the same tiles, each for its part of the heads (a2a+p2p).
  size_t sharers() const;
  double pairs(size_t member) const;
  double mean_pairs() const;
  double of_mean(size_t member) const;  // the member's work divided by the mean
  size_t fullest() const;
  double imbalance() const { return of_mean(fullest()); }  // maximum divided by mean
  // Whether every pair of a causal sequence is computed, that is, without a window or documents.
  bool whole_triangle() const;
  int64_t busy_ns(size_t member) const;
};

struct AttentionGroup {
  std::vector<size_t> members;     // rank indices of the store, in the order of the cp axis
  std::vector<AttentionUse> uses;  // sorted by begin

  bool has(size_t rank_index) const;
  // The index of the last use that has begun on some rank; before the first one begins, the first. REQUIRES: there are
  // uses.
  size_t at(int64_t time_ns) const;
};

struct AttentionTable {
  std::vector<AttentionGroup> groups;  // the groups that have uses, sorted by first rank
  bool empty() const { return groups.empty(); }
};

AttentionTable attention_table(const TraceStore& store, const Window& window);

// "rank 7 does 1.88 times the mean; --cp-balance zigzag would be 1.00".
std::string balance_words(const TraceStore& store, const AttentionGroup& group, const AttentionUse& use);
std::string use_words(const AttentionUse& use);  // "layers.3.attention backward, microbatch 0"
// The grid of the first forward, with the rank of each cell, and each rank's share.
// "3 ranks compute each block, with 1/3 of the heads each". REQUIRES: sharers() > 1.
std::string sharers_words(const AttentionUse& use);

std::string attention_text(const TraceStore& store, const AttentionTable& table);

}  // namespace ranklab::viz
