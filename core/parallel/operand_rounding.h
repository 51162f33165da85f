// One operand of a product rounded to few bits and read back in fp32: its groups' largest magnitudes, agreed on with
// the ranks that hold the rest of them, then their scales, then the numbers. Cost: one pass where scales need nobody
// else, else two. Legend: R rows, C columns. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/comm/communicator.h"
#include "core/precision/quantize.h"

namespace ranklab {

// Where a matrix is several fused ones beside each other: groups begin anew with each.
struct OperandPart {
  int64_t begin = 0;  // on this rank
  int64_t size = 0;
  int64_t global_begin = 0;  // in the whole matrix
};
using OperandParts = std::vector<OperandPart>;  // empty: one

// Stochastic rounding draws for element (row, column) of the whole matrix.
struct OperandNoise {
  const RandomStream* stream = nullptr;  // null: to nearest
  std::vector<uint64_t> rows = {};       // numbers of the rows; empty: told apart by their content
  int64_t columns = 0;                   // of the whole matrix
};

struct OperandRounding {
  TensorPrecision precision;
  Along along = Along::kColumns;
  Communicator* rows_group = nullptr;  // ranks that hold the other rows; null: none
  Communicator* cols_group = nullptr;
  OperandParts row_parts = {};
  OperandParts col_parts = {};
  OperandNoise noise = {};
  // Delayed scaling: the magnitude that the scale is made of; 0: none is known, scale 1.
  std::optional<float> amax = {};
  // On a GPU: codes instead of values, where the operand can have them (codes_fit).
  bool codes = false;
};

// A block of the matrix with groups of its own: the whole of it, or a fused part.
struct OperandPiece {
  int64_t row = 0, rows = 0, col = 0, cols = 0;
  int64_t global_col = 0;
  GroupShape groups = {};
  size_t first_group = 0, group_count = 0;  // in RoundedOperand::scales
};

struct RoundedOperand {
  at::Tensor values;  // fp32 [R, C]
  float amax = 0;     // of this rank's numbers; infinite when one is not finite
  std::vector<OperandPiece> pieces = {};
  std::vector<BlockScale> scales = {};
  // Of a GPU's operand, instead of amax and scales and there: reading them waits for it (device_operand.h).
  at::Tensor device_amax = {};    // [1]; undefined where no scale reaches over a tensor or row
  at::Tensor device_scales = {};  // [groups]
  at::Tensor codes = {};          // float8 [R, C], instead of values
};

// A magnitude as ranks tell it each other: infinite for NaN, so that all see that something is no number.
float visible_amax(float amax);
// The largest of each over the group, which may be null: one all_reduce.
void agree_on_amax(std::span<float> amax, Communicator* group, at::Device device = at::kCPU);

// matrix [R, C] of any floating type. On a GPU asynchronous.
RoundedOperand round_operand(const at::Tensor& matrix, const OperandRounding& how);

// The parts of a matrix [rows, cols] in which groups begin anew.
std::vector<OperandPiece> operand_pieces(const OperandRounding& how, int64_t rows, int64_t cols);

// Whether the scale of a group is made of the whole tensor's largest magnitude.
bool scale_of_tensor(const TensorPrecision& precision);

}  // namespace ranklab
