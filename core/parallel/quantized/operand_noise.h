// The random numbers with which an operand of a product is rounded stochastically: one for each element of the whole
// matrix, so that every layout of ranks rounds alike. Legend: R rows, C columns. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/numbers/philox.h"
#include "core/parallel/token_context.h"

namespace ranklab {

// Where the number of element (row, column) is drawn. On a device that rounds (rounding_of(), device_operand.h) the
// tensors replace what the host would read.
struct OperandNoise {
  std::optional<RandomStream> stream = {};  // none: round to nearest
  std::vector<uint64_t> rows = {};          // indices of the rows; empty: hashes of their contents
  at::Tensor device_rows = {};              // the same, [R] int64
  int64_t columns = 0;                      // number of columns of the whole matrix
  // In a recorded pass: [] int64, which with the hash of the stream's name replaces the step of the stream
  // (RandomStream::step_key()); undefined: the stream's step applies.
  at::Tensor step_key = {};
  uint64_t name_key = 0;
};

struct NoiseStream {
  uint64_t seed = 0;
  std::string name;                // of the module, and what is rounded
  int64_t first_position = 0;      // of tokens: the position of the first row, in its rank's list of positions
  std::vector<int64_t> rows = {};  // of a weight: the indices of its rows in the whole weight
  int64_t columns = 0;             // OperandNoise's
};

// The noise for a matrix [R, C] whose rows are these tokens, or in their pass those of a weight. In a recorded pass the
// step and the first sample are read from TokenContext::random_offset. Cost on a device: a few small kernels, for which
// the host does not wait.
OperandNoise operand_noise(const at::Tensor& matrix, const TokenRows& tokens, const NoiseStream& from);

}  // namespace ranklab
