#include "core/spec/attention_cells.h"

#include <algorithm>
#include <limits>

namespace ranklab {
namespace {

// The sum over all y < x of y clamped to [0, most].
int64_t limited_sum(int64_t x, int64_t most) {
  if (x <= 0) return 0;
  const int64_t rising = std::min(x, most + 1);
  return rising * (rising - 1) / 2 + (x - rising) * most;
}

// The number of pairs in which the key is at most the query + last.
int64_t pairs_up_to(int64_t query, int64_t query_end, int64_t key, int64_t key_end, int64_t last) {
  const int64_t shift = last + 1 - key, most = key_end - key;
  return limited_sum(query_end + shift, most) - limited_sum(query + shift, most);
}

}  // namespace

int64_t pairs_within(const AttentionBlock& block, int64_t query, int64_t query_end, int64_t key, int64_t key_end) {
  const int64_t q = std::max<int64_t>(query - block.query, 0), q_end = std::min(query_end - block.query, block.queries);
  const int64_t k = std::max<int64_t>(key - block.key, 0), k_end = std::min(key_end - block.key, block.keys);
  if (q >= q_end || k >= k_end) return 0;
  switch (block.kind) {
    case AttentionBlock::Kind::kFull:
      return (q_end - q) * (k_end - k);
    case AttentionBlock::Kind::kCausal:
      return pairs_up_to(q, q_end, k, k_end, 0);
    case AttentionBlock::Kind::kBand:
      break;
  }
  return pairs_up_to(q, q_end, k, k_end, block.band.last) - pairs_up_to(q, q_end, k, k_end, block.band.first - 1);
}

AttentionCells::AttentionCells(int64_t seq_length, int ranks, SequenceBalance balance)
    : seq_length_(seq_length),
      chunks_(sequence_divisor(ranks, balance)),
      striped_(balance == SequenceBalance::kStripe && ranks > 1) {}

std::vector<AttentionCells::Piece> AttentionCells::pieces_of(const std::vector<PositionRun>& runs) const {
  const int64_t length = striped_ ? std::numeric_limits<int64_t>::max() : std::max<int64_t>(seq_length_ / chunks_, 1);
  std::vector<Piece> pieces;
  int64_t index = 0;
  for (const PositionRun& run : runs) {
    for (int64_t i = 0; i < run.count;) {
      const int64_t chunk = striped_ ? run.first % chunks_ : (run.first + i) / length;
      const int64_t end = striped_ ? run.count : std::min(run.count, (chunk + 1) * length - run.first);
      pieces.push_back({chunk, index + i, index + end});
      i = end;
    }
    index += run.count;
  }
  return pieces;
}

void AttentionCells::add(const std::vector<PositionRun>& queries, const std::vector<PositionRun>& keys,
                         const AttentionBlock& block) {
  const std::vector<Piece> of_keys = pieces_of(keys);
  for (const Piece& query : pieces_of(queries)) {
    for (const Piece& key : of_keys)
      add(query.chunk, key.chunk, pairs_within(block, query.begin, query.end, key.begin, key.end));
  }
}

void AttentionCells::add(int64_t query, int64_t key, int64_t pairs) {
  if (pairs == 0) return;
  const auto known =
      std::ranges::find_if(cells_, [&](const AttentionCell& cell) { return cell.query == query && cell.key == key; });
  if (known == cells_.end())
    cells_.push_back({query, key, pairs});
  else
    known->pairs += pairs;
}

}  // namespace ranklab
