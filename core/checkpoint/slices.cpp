#include "core/checkpoint/slices.h"

#include <algorithm>

namespace ranklab {
namespace {

// Number of elements outside, along and inside the partitioned dim; an unpartitioned tensor is one row.
struct Extent {
  int64_t outer = 1, length = 1, inner = 1;
  std::vector<std::pair<int64_t, int64_t>> ranges = {};
};

Extent extent_of(std::span<const int64_t> shape, const SlicePartition& partition) {
  Extent extent;
  if (partition.dim < 0) {
    for (const int64_t size : shape) extent.length *= size;
    extent.ranges = {{0, extent.length}};
    return extent;
  }
  const auto dim = static_cast<size_t>(partition.dim);
  for (size_t i = 0; i < shape.size(); ++i) (i < dim ? extent.outer : extent.inner) *= i == dim ? 1 : shape[i];
  extent.length = shape[dim];
  extent.ranges = partition.ranges;
  return extent;
}

bool multiply(int64_t& product, int64_t by) { return !__builtin_mul_overflow(product, by, &product); }

// -1 on overflow.
int64_t partition_length(const SlicePartition& partition) {
  int64_t length = 0;
  for (const auto& [begin, end] : partition.ranges) {
    if (begin < 0 || end <= begin || __builtin_add_overflow(length, end - begin, &length)) return -1;
  }
  return length;
}

void append(std::vector<SliceRun>& runs, const SliceRun& run) {
  if (run.length <= 0) return;
  if (!runs.empty()) {
    SliceRun& last = runs.back();
    if (last.global + last.length == run.global && last.at + last.length == run.at) {
      last.length += run.length;
      return;
    }
  }
  runs.push_back(run);
}

}  // namespace

int64_t shape_elements(std::span<const int64_t> shape) {
  int64_t elements = 1;
  for (const int64_t size : shape) {
    if (size < 1 || !multiply(elements, size)) return -1;
  }
  return elements;
}

int64_t local_elements(std::span<const int64_t> shape, const SlicePartition& partition) {
  if (partition.dim < 0) return shape_elements(shape);
  int64_t elements = partition_length(partition);
  if (elements < 0) return -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i != static_cast<size_t>(partition.dim) && !multiply(elements, shape[i])) return -1;
  }
  return elements;
}

TensorSlice whole_slice(std::span<const int64_t> shape) { return {.partition = {}, .end = shape_elements(shape)}; }

std::string fault_of_slice(std::span<const int64_t> shape, const TensorSlice& slice) {
  const int64_t global = shape_elements(shape);
  if (global < 0) return "the shape has a size below 1, or too many elements";
  const SlicePartition& partition = slice.partition;
  if (partition.dim < -1 || partition.dim >= static_cast<int>(shape.size())) return "the cut is along no dim";
  if (partition.dim < 0 && !partition.ranges.empty()) return "ranges without a dim";
  if (partition.dim >= 0 && partition.ranges.empty()) return "a cut without ranges";
  const int64_t local = local_elements(shape, partition);
  if (local < 0) return "a range is empty, negative or too long";
  // Padding extends past the end, in any real layout by less than the global size; indices must not overflow.
  int64_t reach = global;
  for (const auto& [begin, end] : partition.ranges) reach = std::max(reach, end);
  int64_t largest = reach;
  if (!multiply(largest, 2)) return "a range is too far out";
  for (const int64_t size : shape) {
    if (!multiply(largest, size)) return "a range is too far out";
  }
  if (slice.begin < 0 || slice.begin >= slice.end || slice.end > local) return "begin and end are not within the cut";
  return {};
}

std::vector<SliceRun> slice_runs(std::span<const int64_t> shape, const TensorSlice& slice) {
  const Extent extent = extent_of(shape, slice.partition);
  int64_t row = 0;  // local elements per outer index
  for (const auto& [begin, end] : extent.ranges) row += (end - begin) * extent.inner;
  std::vector<SliceRun> runs;
  for (int64_t outer = slice.begin / row; outer * row < slice.end; ++outer) {
    int64_t at = outer * row;
    for (const auto& [begin, end] : extent.ranges) {
      const int64_t real_end = std::clamp(extent.length, begin, end);
      const int64_t first = std::max(at, slice.begin);
      const int64_t last = std::min(at + (real_end - begin) * extent.inner, slice.end);
      append(runs, {.global = (outer * extent.length + begin) * extent.inner + (first - at),
                    .at = first - slice.begin,
                    .length = last - first});
      at += (end - begin) * extent.inner;
    }
  }
  std::ranges::sort(runs, {}, &SliceRun::global);
  return runs;
}

std::vector<SliceOverlap> meet(std::span<const SliceRun> from, std::span<const SliceRun> to) {
  std::vector<SliceOverlap> overlaps;
  for (size_t i = 0, j = 0; i < from.size() && j < to.size();) {
    const int64_t from_end = from[i].global + from[i].length, to_end = to[j].global + to[j].length;
    const int64_t begin = std::max(from[i].global, to[j].global), end = std::min(from_end, to_end);
    if (begin < end) {
      overlaps.push_back({.from_at = from[i].at + (begin - from[i].global),
                          .to_at = to[j].at + (begin - to[j].global),
                          .length = end - begin});
    }
    ++(from_end < to_end ? i : j);
  }
  return overlaps;
}

std::string cover_error(int64_t elements, std::span<const std::vector<SliceRun>> slices) {
  std::vector<std::pair<int64_t, int64_t>> spans;  // begin, end
  for (const std::vector<SliceRun>& runs : slices) {
    for (const SliceRun& run : runs) spans.emplace_back(run.global, run.global + run.length);
  }
  std::ranges::sort(spans);
  int64_t end = 0;
  for (const auto& span : spans) {
    if (span.first > end) return "no file holds element " + std::to_string(end);
    if (span.first < end) return "element " + std::to_string(span.first) + " is held twice";
    end = span.second;
  }
  if (end < elements) return "no file holds element " + std::to_string(end);
  return end > elements ? "element " + std::to_string(elements) + " lies outside" : "";
}

}  // namespace ranklab
