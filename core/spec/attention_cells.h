// The attention that a rank computes, as cells of a grid: chunks of queries by chunks of keys, with the number of
// (query, key) pairs in each cell. A picture made from it shows every rank's part of the causal triangle. Cost:
// O(blocks x chunks), whatever their size. Thread rule: pure; an AttentionCells belongs to one thread.
#pragma once
#include <cstdint>
#include <vector>

#include "core/spec/sequence_part.h"

namespace ranklab {

// The number of pairs of a block whose queries are in [query, query_end) and whose keys are in [key, key_end), by index
// in the block's runs.
int64_t pairs_within(const AttentionBlock& block, int64_t query, int64_t query_end, int64_t key, int64_t key_end);

struct AttentionCell {
  int64_t query = 0, key = 0;  // chunk numbers
  int64_t pairs = 0;

  bool operator==(const AttentionCell&) const = default;
};

class AttentionCells {
 public:
  // The grid for a sequence over `ranks`, divided as `balance` says.
  AttentionCells(int64_t seq_length, int ranks, SequenceBalance balance);

  // Adds a block, as attention_blocks() returns it, of the positions of `queries` and `keys`.
  void add(const std::vector<PositionRun>& queries, const std::vector<PositionRun>& keys, const AttentionBlock& block);

  int64_t seq_length() const { return seq_length_; }
  int64_t chunks() const { return chunks_; }
  bool striped() const { return striped_; }
  // those with at least one pair, in the order in which they were added
  const std::vector<AttentionCell>& cells() const { return cells_; }

 private:
  struct Piece {
    int64_t chunk = 0;
    int64_t begin = 0, end = 0;  // indices in the runs
  };
  std::vector<Piece> pieces_of(const std::vector<PositionRun>& runs) const;
  void add(int64_t query, int64_t key, int64_t pairs);

  int64_t seq_length_, chunks_;
  bool striped_;
  std::vector<AttentionCell> cells_;
};

}  // namespace ranklab
