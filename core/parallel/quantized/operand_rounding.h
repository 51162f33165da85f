// Quantizes one operand of a product and returns it dequantized in fp32: computes the amax of its scaling groups,
// agrees on it with the ranks that hold other parts of these groups, then computes the scales and the values. Cost: one
// pass if scales depend only on their own groups, else two. Legend: R rows, C columns. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/comm/communicator.h"
#include "core/parallel/quantized/operand_noise.h"
#include "core/precision/quantize.h"
#include "core/sim/op_observer.h"

namespace ranklab {

// One of several matrices that are fused in a weight; scaling groups do not cross parts.
struct OperandPart {
  int64_t begin = 0;  // index on this rank
  int64_t size = 0;
  int64_t global_begin = 0;  // index in the whole matrix
};
using OperandParts = std::vector<OperandPart>;  // empty: a single part

struct OperandRounding {
  TensorPrecision precision;
  Along along = Along::kColumns;
  Communicator* rows_group = nullptr;  // the ranks that hold the other rows; null: none
  Communicator* cols_group = nullptr;
  Communicator* context_group = nullptr;  // the ranks that hold the rows of other positions; null: none
  OperandParts row_parts = {};
  OperandParts col_parts = {};
  OperandNoise noise = {};
  // Delayed scaling: the amax from which the scale is computed; 0: unknown, the scale is 1.
  std::optional<float> amax = {};
  at::Tensor device_amax = {};  // [1], the same on a device that rounds, where graphs can read it; replaces `amax`
  // On a GPU: store codes instead of values, if codes_fit(), with each row along the dimension over which the product
  // sums.
  bool codes = false;
  // For codes with one scale per tensor: the scale [1] of an earlier rounding of this tensor, which saves the pass for
  // its amax; and whether a product along the other dimension also needs its codes.
  at::Tensor device_scale = {};
  bool both_ways = false;
  // The input of the rounding is the matrix already rounded along columns (DeepSeek-V3's weight gradients use
  // activations in this form, arXiv 2412.19437, section 3.3).
  bool along_columns_first = false;
};

// A block of the matrix with separate scaling groups: a fused part, or the whole matrix.
struct OperandPiece {
  int64_t row = 0, rows = 0, col = 0, cols = 0;
  int64_t global_col = 0;
  GroupShape groups = {};
  size_t first_group = 0, group_count = 0;  // its range in RoundedOperand::scales
};

struct RoundedOperand {
  at::Tensor values;              // fp32 [R, C]
  Along along = Along::kColumns;  // the dimension over which the product sums, its K
  float amax = 0;                 // over this rank's elements; infinite if one of them is not finite
  std::vector<OperandPiece> pieces = {};
  std::vector<BlockScale> scales = {};
  // For an operand on a GPU, replaces `amax` and `scales`, because reading those would wait for the device
  // (device_operand.h).
  at::Tensor device_amax = {};    // [1]; undefined for group scales or a given scale
  at::Tensor device_scales = {};  // [groups]
  at::Tensor codes = {};          // float8 [R, C], or [C, R] if rounded along rows; replaces `values`
  at::Tensor other_codes = {};    // the transpose of `codes`, if requested

  bool k_first() const { return along == Along::kRows; }
};

// For a product's operand, with or without codes: the number of rows that it contributes to the result, and the length
// over which the product sums.
int64_t rows_of(const RoundedOperand& operand);
int64_t depth_of(const RoundedOperand& operand);

// An amax in the form in which ranks exchange it: infinite for NaN, so that every rank notices an overflow.
float visible_amax(float amax);
// Replaces each number by its maximum over the group, which may be null: one all_reduce.
void agree_on_amax(std::span<float> amax, Communicator* group, at::Device device = at::kCPU);

// The two roundings of along_columns_first; the first one produces values.
OperandRounding first_rounding(const OperandRounding& how);
OperandRounding second_rounding(const OperandRounding& how);

// matrix [R, C] of any floating type. Asynchronous on a GPU.
RoundedOperand round_operand(const at::Tensor& matrix, const OperandRounding& how);

// The blocks of a matrix [rows, cols] that have separate scaling groups.
std::vector<OperandPiece> operand_pieces(const OperandRounding& how, int64_t rows, int64_t cols);

// Whether a group's scale depends on the amax of the whole tensor.
bool scale_of_tensor(const TensorPrecision& precision);

// The cost of rounding an operand on a GPU with FP8 units, whatever rounds it here.
class RoundingCost {
 public:
  RoundingCost(const at::Tensor& matrix, const OperandRounding& how);
  RoundingCost(int64_t elements, size_t element_bytes, const OperandRounding& how);
  // Whether a tensor-wide scale needs a separate pass for its amax, on which the ranks then agree; other scales are
  // found in the rounding pass.
  bool has_amax_pass() const { return has_amax_pass_; }
  void charge_amax() const;
  CostScope of_rounding() const;

 private:
  bool has_amax_pass_;
  double read_bytes_, written_bytes_;
};

}  // namespace ranklab
