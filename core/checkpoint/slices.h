// Which elements of a global tensor a stored piece holds. A rank holds the rows that `partition` selects
// (core/nn/parameter.h has the same Partition, using torch), and a file holds elements [begin, end) of these, in
// row-major order. Any piece in any layout is a few runs of the global tensor; loading in another layout copies the
// overlaps of pieces (PyTorch's DCP and Megatron-Core's dist_checkpointing do the same with boxes). Rows past the
// global size are padding and belong to no run. Cost: one run per row unless the cut is along the first dim. Thread
// rule: pure.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ranklab {

// The local tensor is the concatenation along `dim` of global index ranges [begin, end). dim -1: all of it.
struct SlicePartition {
  int dim = -1;
  std::vector<std::pair<int64_t, int64_t>> ranges = {};
  bool operator==(const SlicePartition&) const = default;
};

struct TensorSlice {
  SlicePartition partition = {};
  int64_t begin = 0, end = 0;  // a range of the local tensor's elements
  int64_t elements() const { return end - begin; }
  bool operator==(const TensorSlice&) const = default;
};

// A piece of a named tensor.
struct NamedSlice {
  std::string tensor = {};          // "weight/layers.0...", "exp_avg/...", "buffer/..."
  std::vector<int64_t> shape = {};  // shape of the whole tensor
  TensorSlice slice = {};
};

// Elements [global, global + length) of the whole tensor are the slice's own elements from `at` on.
struct SliceRun {
  int64_t global = 0;
  int64_t at = 0;
  int64_t length = 0;
  bool operator==(const SliceRun&) const = default;
};

// The number of elements, if all sizes are positive and their product fits; else -1.
int64_t shape_elements(std::span<const int64_t> shape);
int64_t local_elements(std::span<const int64_t> shape, const SlicePartition& partition);
// The slice that is the whole tensor.
TensorSlice whole_slice(std::span<const int64_t> shape);

// "" when it is a valid slice of a tensor of this shape, otherwise what is wrong. The functions below require a valid
// slice.
std::string fault_of_slice(std::span<const int64_t> shape, const TensorSlice& slice);

// Sorted by `global`.
std::vector<SliceRun> slice_runs(std::span<const int64_t> shape, const TensorSlice& slice);

// The overlap of two slices of one tensor: elements from `from_at` on in the first are those from `to_at` on in the
// second.
struct SliceOverlap {
  int64_t from_at = 0, to_at = 0, length = 0;
};
std::vector<SliceOverlap> meet(std::span<const SliceRun> from, std::span<const SliceRun> to);

// "" when the slices together contain each element exactly once, otherwise which element is missing or contained twice.
std::string cover_error(int64_t elements, std::span<const std::vector<SliceRun>> slices);

}  // namespace ranklab
