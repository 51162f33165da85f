#include "core/spec/sequence_part.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"

namespace ranklab {
namespace {

using Kind = AttentionBlock::Kind;

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

// Neighbouring chunks of one rank are merged into one run, such as the last rank's two chunks in a zigzag.
void append(std::vector<PositionRun>& part, const PositionRun& run) {
  if (!part.empty() && run.stride == 1 && part.back().first + part.back().count == run.first)
    part.back().count += run.count;
  else
    part.push_back(run);
}

// Without a window, query i attends to keys 0 to i + last: a rectangle of keys that all queries attend to, a triangle,
// and a rectangle below it.
void add_unbounded(std::vector<AttentionBlock>& blocks, int64_t queries, int64_t keys, int64_t last) {
  const int64_t first_query = std::max<int64_t>(0, -last);  // earlier queries attend to nothing
  const int64_t below = queries - first_query, seen = std::clamp<int64_t>(last, 0, keys);
  if (below <= 0) return;
  if (last >= keys - 1) {
    blocks.push_back({first_query, below, 0, keys});
    return;
  }
  if (seen > 0) blocks.push_back({first_query, below, 0, seen});
  const int64_t side = std::min(below, keys - seen);
  blocks.push_back({first_query, side, seen, side, Kind::kCausal});
  if (below > side) blocks.push_back({first_query + side, below - side, seen, keys - seen});
}

// Each band has few queries, so that few of a block's scores are masked.
void add_windowed(std::vector<AttentionBlock>& blocks, int64_t queries, int64_t keys, const KeyBand& band) {
  constexpr int64_t kLeast = 128;
  const int64_t step = std::max(kLeast, band.last - band.first + 1);
  const int64_t begin = std::max<int64_t>(0, -band.last), end = std::min(queries, keys - band.first);
  for (int64_t query = begin; query < end; query += step) {
    const int64_t count = std::min(step, end - query);
    const int64_t key = std::max<int64_t>(0, query + band.first);
    const int64_t key_end = std::min(keys, query + count + band.last);
    const KeyBand inside{query + band.first - key, query + band.last - key};
    const bool full = inside.last >= key_end - key - 1 && count - 1 + inside.first <= 0;
    blocks.push_back({query, count, key, key_end - key, full ? Kind::kFull : Kind::kBand, full ? KeyBand{} : inside});
  }
}

// A run together with the index of its first position in the part.
struct IndexedRun {
  PositionRun run;
  int64_t index = 0;
};

// The positions of a part that lie in [begin, end).
std::vector<IndexedRun> within(const std::vector<PositionRun>& part, int64_t begin, int64_t end) {
  std::vector<IndexedRun> inside;
  int64_t index = 0;
  for (const PositionRun& run : part) {
    const auto before = [&](int64_t position) {  // number of positions of the run below `position`
      return std::clamp<int64_t>(-floor_div(run.first - position, run.stride), 0, run.count);
    };
    const int64_t from = before(begin), to = before(end);
    if (from < to) inside.push_back({{run.first + from * run.stride, to - from, run.stride}, index + from});
    index += run.count;
  }
  return inside;
}

// Whether indices ascend with positions and no index is left out.
bool is_ascending(const std::vector<IndexedRun>& runs) {
  for (size_t i = 1; i < runs.size(); ++i) {
    const auto& [run, index] = runs[i - 1];
    if (run.first + (run.count - 1) * run.stride > runs[i].run.first || index + run.count != runs[i].index)
      return false;
  }
  return true;
}

// Extends rectangle `a` by `b` if `b` lies directly beside or below it.
bool extend(AttentionBlock& a, const AttentionBlock& b) {
  if (a.kind != Kind::kFull || b.kind != Kind::kFull) return false;
  if (a.query == b.query && a.queries == b.queries && a.key + a.keys == b.key) {
    a.keys += b.keys;
    return true;
  }
  if (a.key == b.key && a.keys == b.keys && a.query + a.queries == b.query) {
    a.queries += b.queries;
    return true;
  }
  return false;
}

void add_pairs(std::vector<AttentionBlock>& blocks, const std::vector<IndexedRun>& queries,
               const std::vector<IndexedRun>& keys, int64_t window) {
  for (const auto& [query_run, query] : queries) {
    for (const auto& [key_run, key] : keys) {
      for (AttentionBlock block : attention_blocks(query_run, key_run, window)) {
        block.query += query;
        block.key += key;
        const bool joined = std::ranges::any_of(blocks, [&](AttentionBlock& before) { return extend(before, block); });
        if (!joined) blocks.push_back(block);
      }
    }
  }
}

}  // namespace

int64_t sequence_divisor(int ranks, SequenceBalance balance) {
  return balance == SequenceBalance::kZigzag && ranks > 1 ? 2 * int64_t{ranks} : ranks;
}

std::vector<PositionRun> sequence_part(int64_t seq_length, int ranks, int rank, SequenceBalance balance) {
  const int64_t divisor = sequence_divisor(ranks, balance);
  RANKLAB_CHECK(seq_length > 0 && seq_length % divisor == 0, ErrorKind::kInvalidArgument,
                .where = "context parallelism",
                .what = "the sequence cannot be split evenly over the context-parallel ranks",
                .got = std::to_string(seq_length) + " positions, --cp " + std::to_string(ranks),
                .want = "a multiple of " + std::to_string(divisor), .fix = "change --seq-length, --cp or --cp-balance");
  const int64_t chunk = seq_length / divisor;
  switch (balance) {
    case SequenceBalance::kContiguous:
      return {{rank * chunk, chunk}};
    case SequenceBalance::kStripe:
      return {{rank, chunk, ranks}};
    case SequenceBalance::kZigzag:
      break;
  }
  if (ranks == 1) return {{0, chunk}};
  std::vector<PositionRun> part;
  append(part, {rank * chunk, chunk});
  append(part, {(divisor - 1 - rank) * chunk, chunk});
  return part;
}

std::vector<PositionRun> joined_part(int64_t seq_length, int ranks, int joined, int member, SequenceBalance balance) {
  if (balance != SequenceBalance::kStripe) return sequence_part(seq_length, ranks / joined, member, balance);
  std::vector<PositionRun> together;
  for (int i = 0; i < joined; ++i)
    together.push_back(sequence_part(seq_length, ranks, member * joined + i, balance).front());
  return together;
}

std::vector<int64_t> positions_of(const std::vector<PositionRun>& part) {
  std::vector<int64_t> positions;
  for (const PositionRun& run : part) {
    for (int64_t i = 0; i < run.count; ++i) positions.push_back(run.first + i * run.stride);
  }
  return positions;
}

int64_t AttentionBlock::pairs() const {
  if (kind == Kind::kFull) return queries * keys;
  if (kind == Kind::kCausal) return queries * (queries + 1) / 2;
  int64_t sum = 0;
  for (int64_t i = 0; i < queries; ++i)
    sum += std::max<int64_t>(0, std::min(keys - 1, i + band.last) - std::max<int64_t>(0, i + band.first) + 1);
  return sum;
}

std::vector<AttentionBlock> attention_blocks(const PositionRun& queries, const PositionRun& keys, int64_t window) {
  RANKLAB_CHECK(queries.stride == keys.stride, ErrorKind::kInternal, .where = "attention_blocks",
                .what = "queries and keys lie at different strides", .got = std::to_string(keys.stride),
                .want = std::to_string(queries.stride));
  const int64_t ahead = queries.first - keys.first, stride = queries.stride;
  const int64_t last = floor_div(ahead, stride);
  std::vector<AttentionBlock> blocks;
  const int64_t first = floor_div(ahead - window, stride) + 1;
  // A window that reaches the first key from every query masks nothing.
  if (window <= 0 || queries.count - 1 + first <= 0) {
    add_unbounded(blocks, queries.count, keys.count, last);
  } else if (first <= last) {
    add_windowed(blocks, queries.count, keys.count, {first, last});
  }
  return blocks;
}

std::vector<AttentionBlock> attention_blocks(const std::vector<PositionRun>& queries,
                                             const std::vector<PositionRun>& keys, int64_t window,
                                             const std::vector<int64_t>& documents) {
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max() / 2;
  std::vector<AttentionBlock> blocks;
  for (size_t i = 0; i < std::max<size_t>(documents.size(), 1); ++i) {
    const int64_t begin = documents.empty() ? 0 : documents[i];
    const int64_t end = i + 1 < documents.size() ? documents[i + 1] : kEnd;
    const std::vector<IndexedRun> own = within(queries, begin, end), others = within(keys, begin, end);
    if (window <= 0 && queries == keys && !own.empty() && is_ascending(own)) {
      const int64_t count = own.back().index + own.back().run.count - own.front().index;
      blocks.push_back({own.front().index, count, own.front().index, count, Kind::kCausal});
    } else {
      add_pairs(blocks, own, others, window);
    }
  }
  return blocks;
}

void add_chunk_starts(std::vector<int64_t>& starts, int64_t begin, int64_t end, int64_t chunk) {
  const int64_t step = chunk > 0 ? chunk : end - begin;
  for (int64_t start = begin; start < end; start += step) starts.push_back(start);
}

std::vector<std::vector<PositionRun>> gathered_keys(int64_t seq_length, int ranks, SequenceBalance balance) {
  if (balance != SequenceBalance::kStripe) return {{{0, seq_length}}};
  std::vector<std::vector<PositionRun>> parts;
  for (int rank = 0; rank < ranks; ++rank) parts.push_back(sequence_part(seq_length, ranks, rank, balance));
  return parts;
}

}  // namespace ranklab
