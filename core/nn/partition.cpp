#include <numeric>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/nn/parameter.h"

namespace ranklab {
namespace {

void check_divides(int64_t length, int count, const std::vector<int64_t>& shape) {
  RANKLAB_CHECK(count > 0 && length % count == 0, ErrorKind::kInvalidArgument, .where = "parameter partition",
                .what = "a sharded dimension is not divisible by the number of shards",
                .got = strprintf("%lld elements of %s over %d ranks", static_cast<long long>(length),
                                 shape_text(shape).c_str(), count),
                .want = strprintf("a multiple of %d, e.g. %lld", count,
                                  static_cast<long long>((length + count - 1) / count * count)),
                .fix = "change the model's size or the parallel size of this axis");
}

}  // namespace

Partition replicated(std::vector<int64_t> shape) { return {std::move(shape), -1, {}}; }

Partition shard_dim(std::vector<int64_t> shape, int dim, int index, int count) {
  const int64_t length = shape.at(static_cast<size_t>(dim));
  check_divides(length, count, shape);
  const int64_t each = length / count;
  return {std::move(shape), dim, {{index * each, (index + 1) * each}}};
}

Partition shard_segments(std::vector<int64_t> shape, const std::vector<int64_t>& segments, int index, int count) {
  const int64_t total = std::accumulate(segments.begin(), segments.end(), int64_t{0});
  RANKLAB_CHECK(total == shape.at(0), ErrorKind::kInternal, .where = "parameter partition",
                .what = "segments do not add up to dim 0", .got = "[" + join(segments, ", ") + "]",
                .want = shape_text(shape));
  Partition partition{std::move(shape), 0, {}};
  int64_t begin = 0;
  for (const int64_t length : segments) {
    check_divides(length, count, partition.global_shape);
    const int64_t each = length / count;
    partition.ranges.emplace_back(begin + index * each, begin + (index + 1) * each);
    begin += length;
  }
  return partition;
}

Partition shard_padded(std::vector<int64_t> shape, int index, int count) {
  const int64_t each = (shape.at(0) + count - 1) / count;
  return {std::move(shape), 0, {{index * each, (index + 1) * each}}};
}

Partition shard(const std::vector<int64_t>& shape, const std::vector<int64_t>& parts, ModuleSplit split, int index,
                int count) {
  switch (split) {
    case ModuleSplit::kReplicated:
      break;
    case ModuleSplit::kVocabulary:
      return shard_padded(shape, index, count);
    case ModuleSplit::kColumn:
      return shard_segments(shape, parts, index, count);
    case ModuleSplit::kRow:
      return shard_dim(shape, 1, index, count);
  }
  return replicated(shape);
}

std::vector<int64_t> local_shape(const Partition& partition) {
  std::vector<int64_t> shape = partition.global_shape;
  if (partition.replicated()) return shape;
  int64_t length = 0;
  for (const auto& [begin, end] : partition.ranges) length += end - begin;
  shape[static_cast<size_t>(partition.dim)] = length;
  return shape;
}

}  // namespace ranklab
