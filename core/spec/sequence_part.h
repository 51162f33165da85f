// How context parallelism distributes the positions of a sequence over ranks, and which of one rank's queries attend to
// which of another's keys. Pure arithmetic, torch-free. With S positions, n ranks and causal attention the slowest rank
// does (max over mean) of the work:
//   contiguous  rank r has positions r S/n and on                              (2n - 1) / n: 15/8 for 8 ranks
//   zigzag      the r-th and the r-th last of 2n chunks                        1  (Llama 3, arXiv 2407.21783, section
//               3.3.2; Megatron-LM)
//   stripe      every n-th position, from the r-th (Brandon et al. 2023, arXiv 2311.09431)   nearly 1
#pragma once
#include <cstdint>
#include <optional>
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

// The sequence length must be a multiple of it.
int64_t sequence_divisor(int ranks, SequenceBalance balance);
// The positions of one rank, ascending. Throws kInvalidArgument if seq_length is no multiple of sequence_divisor().
std::vector<PositionRun> sequence_part(int64_t seq_length, int ranks, int rank, SequenceBalance balance);
// The positions that `joined` neighbours have together, as their `member`-th group: chunks of a zigzag lie side by
// side, as one larger chunk on each side; stripes stay apart.
std::vector<PositionRun> joined_part(int64_t seq_length, int ranks, int joined, int member, SequenceBalance balance);
std::vector<int64_t> positions_of(const std::vector<PositionRun>& part);

// Which keys of a block a query attends to: the i-th query to keys i + first to i + last.
struct KeyBand {
  int64_t first = 0;
  int64_t last = 0;

  bool operator==(const KeyBand&) const = default;
};

// Queries and keys by their index in their runs. Every query attends to at least one key.
struct AttentionBlock {
  enum class Kind {
    kFull,    // every query to every key
    kCausal,  // as many queries as keys; the i-th query to keys 0 to i
    kBand
  };
  int64_t query = 0, queries = 0, key = 0, keys = 0;
  Kind kind = Kind::kFull;
  KeyBand band = {};  // of a kBand, by index in the block

  int64_t pairs() const;  // of a query and a key that it attends to
  bool operator==(const AttentionBlock&) const = default;
};

// The blocks that together hold every pair of a query at p and a key at p - window + 1 to p (window 0: any to p) once.
// REQUIRES: runs of one stride.
std::vector<AttentionBlock> attention_blocks(const PositionRun& queries, const PositionRun& keys, int64_t window);

// The same for the parts of two ranks, whose positions lie one behind the other in a tensor: as few blocks as possible.
// `documents`: the first positions of the sequence's documents, ascending, the first 0; queries attend to keys of their
// own document alone. Empty: the sequence is one.
std::vector<AttentionBlock> attention_blocks(const std::vector<PositionRun>& queries,
                                             const std::vector<PositionRun>& keys, int64_t window,
                                             const std::vector<int64_t>& documents = {});

// Adds to `starts` those of chunks of `chunk` positions in a document [begin, end); 0: the document's alone.
void add_chunk_starts(std::vector<int64_t>& starts, int64_t begin, int64_t end, int64_t chunk);

// Keys that are gathered, in parts that lie at one stride: all of them in order, or rank after rank.
std::vector<std::vector<PositionRun>> gathered_keys(int64_t seq_length, int ranks, SequenceBalance balance);

// Layers that attend alike.
struct AttentionOfLayers {
  int64_t window = 0;
  int64_t chunk = 0;  // positions attend within chunks of so many; 0: there are none
  int64_t layers = 1;
  bool in_order = true;  // keys as gathered_keys() has them; otherwise rank after rank
  int joined = 1;        // so many neighbours exchange heads first: joined_part()
};

// The rank of a context-parallel group that takes longest, by pairs of a query and a key, then by blocks, or the other
// way round (short sequences, whose kernels take hardly longer than their launch); then by the queries in blocks, whose
// results are merged.
enum class SlowestBy { kPairs, kBlocks };
int slowest_rank(int64_t seq_length, int ranks, SequenceBalance balance, const std::vector<AttentionOfLayers>& layers,
                 SlowestBy by = SlowestBy::kPairs);

// Pairs of a query of one rank and a key that it attends to, over those of the mean rank.
double attention_imbalance(int64_t seq_length, int ranks, SequenceBalance balance);

}  // namespace ranklab
