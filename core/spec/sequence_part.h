// How context parallelism distributes the positions of a sequence over ranks, and which of one rank's queries attend to
// which of another's keys. Pure arithmetic, torch-free. With S positions, n ranks and causal attention the slowest rank
// does (max over mean) of the work:
//   contiguous  rank r has positions r S/n and on                              (2n - 1) / n: 15/8 for 8 ranks
//   zigzag      the r-th and the r-th last of 2n chunks                        1  (Llama 3, arXiv 2407.21783, section
//               3.3.2; Megatron-LM)
//   stripe      every n-th position, from the r-th (Brandon et al. 2023, arXiv 2311.09431)   nearly 1
#pragma once
#include <cstdint>
#include <vector>

namespace ranklab {

enum class SequenceBalance { kContiguous, kZigzag, kStripe };

// Positions first, first + stride, ...
struct PositionRun {
  int64_t first = 0;
  int64_t count = 0;
  int64_t stride = 1;

  bool operator==(const PositionRun&) const = default;
};

// The number of which the sequence length must be a multiple.
int64_t sequence_divisor(int ranks, SequenceBalance balance);
// The positions of one rank, ascending. Throws kInvalidArgument if seq_length is not a multiple of sequence_divisor().
std::vector<PositionRun> sequence_part(int64_t seq_length, int ranks, int rank, SequenceBalance balance);
// The positions that a group of `joined` neighbouring ranks holds together; `member` is the group's number. Chunks of a
// zigzag are adjacent and form one larger chunk on each side; stripes remain separate runs.
std::vector<PositionRun> joined_part(int64_t seq_length, int ranks, int joined, int member, SequenceBalance balance);
std::vector<int64_t> positions_of(const std::vector<PositionRun>& part);

// Which keys of a block a query attends to: query i attends to keys i + first to i + last.
struct KeyBand {
  int64_t first = 0;
  int64_t last = 0;

  bool operator==(const KeyBand&) const = default;
};

// Queries and keys are given by their index in their runs. Every query attends to at least one key.
struct AttentionBlock {
  enum class Kind {
    kFull,    // every query attends to every key
    kCausal,  // as many queries as keys; query i attends to keys 0 to i
    kBand
  };
  int64_t query = 0, queries = 0, key = 0, keys = 0;
  Kind kind = Kind::kFull;
  KeyBand band = {};  // for kBand, by index in the block

  int64_t pairs() const;  // number of (query, key) pairs where the query attends to the key
  bool operator==(const AttentionBlock&) const = default;
};

// Blocks that together contain, exactly once, every pair of a query at position p and a key at p - window + 1 to p
// (window 0: any key up to p). REQUIRES: both runs have the same stride.
std::vector<AttentionBlock> attention_blocks(const PositionRun& queries, const PositionRun& keys, int64_t window);

// The same for the parts of two ranks, whose runs are concatenated in a tensor; returns as few blocks as possible.
// `documents`: the first positions of the sequence's documents, ascending and beginning with 0; queries attend only to
// keys of their own document. Empty: the sequence is one document.
std::vector<AttentionBlock> attention_blocks(const std::vector<PositionRun>& queries,
                                             const std::vector<PositionRun>& keys, int64_t window,
                                             const std::vector<int64_t>& documents = {});

// Appends to `starts` the first positions of the chunks of `chunk` positions in a document [begin, end); if `chunk` is
// 0, only the document's own.
void add_chunk_starts(std::vector<int64_t>& starts, int64_t begin, int64_t end, int64_t chunk);

// The positions of gathered keys, split into parts whose positions have one stride: all positions in order, or rank
// after rank.
std::vector<std::vector<PositionRun>> gathered_keys(int64_t seq_length, int ranks, SequenceBalance balance);

}  // namespace ranklab
