// A parameter whose shards are sent as codes (shard_codec.h), and its scaling groups. Torch-free. Thread rule: pure
// functions.
#pragma once
#include <cstdint>
#include <vector>

#include "core/precision/quantize.h"

namespace ranklab {

// One parameter [rows, cols] of the bucket. REQUIRES: its precision satisfies check_recipe()'s conditions for `gather`.
struct CodedParameter {
  int64_t offset = 0;  // index of its first element in the bucket
  int64_t elements = 0;
  int64_t cols = 1;
  std::vector<int64_t> row_parts = {};  // rows of each fused matrix; scaling groups do not cross them
  TensorPrecision precision = {};       // not quantized: its elements are sent unchanged
};

// A matrix within a parameter with separate scaling groups, in a grid.
struct CodedPart {
  int64_t begin = 0;  // its first element, counted from the parameter's
  int64_t rows = 0, cols = 0;
  GroupShape groups = {};
  int64_t first_group = 0;  // counted from the parameter's

  int64_t end() const { return begin + rows * cols; }
  int64_t grid_rows() const { return groups.grid_rows(rows); }
  int64_t grid_cols() const { return groups.grid_cols(cols); }
  int64_t group_count() const { return grid_rows() * grid_cols(); }
};

// With scales per tensor or row there is one part. REQUIRES, here and below: parameter.precision.quantized().
std::vector<CodedPart> parts_of(const CodedParameter& parameter);
int64_t group_count(const CodedParameter& parameter);

}  // namespace ranklab
