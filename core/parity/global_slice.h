// Which elements of a global tensor a rank's tensor holds, in coordinates that are the same in every layout. Thread
// rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "core/nn/parameter.h"
#include "core/runtime/observe/activation_slice.h"

namespace ranklab {

// The part of a global tensor that a rank holds: positions in each dim, and of the block that they select, in row-major
// order, elements [begin, end).
struct GlobalSlice {
  std::vector<int64_t> shape;                   // of the global tensor
  std::vector<std::vector<int64_t>> positions;  // per dim; empty: all of it. Positions past the shape are padding
  int64_t begin = 0, end = -1;                  // end -1: to the last element

  int64_t elements() const;
  int64_t global_elements() const;
  bool is_whole() const;
  // [elements]: the index of each element in the flat global tensor; -1 for padding, which belongs to no element.
  at::Tensor index() const;
  std::string text() const;  // "[0:8, 2:4, :]"; if cut, "elements 0 to 63 of [:, 0:4]"
  bool operator==(const GlobalSlice&) const = default;
};

GlobalSlice whole_slice(std::vector<int64_t> shape);
// Elements [begin, end) of a rank's part of the parameter; end -1: all.
GlobalSlice parameter_slice(const Parameter& parameter, int64_t begin = 0, int64_t end = -1);
// [positions, sequences, width...] in a global [seq_length, global batch, width...].
GlobalSlice activation_global_slice(const ActivationSlice& slice, int64_t seq_length, int64_t sequences,
                                    const std::vector<int64_t>& width);

// The index of an element given its index in the flattened tensor: 67 of [8, 64] is "[1, 3]"; -1 is "padding".
std::string coordinates_text(int64_t flat, const std::vector<int64_t>& shape);

}  // namespace ranklab
