#include "core/parallel/quantized/linear_quantizer.h"

#include <algorithm>

#include "core/nn/gemm.h"
#include "core/nn/scalar_type.h"
#include "core/parallel/quantized/device_operand.h"
#include "core/parallel/quantized/hadamard_transform.h"
#include "core/parallel/quantized/hopper_product.h"
#include "core/parallel/quantized/operand_noise.h"
#include "core/parallel/quantized/quantizer_book.h"
#include "core/parallel/quantized/scaled_product.h"
#include "core/precision/device_rounding.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_cost.h"
#include "core/sim/op_observer.h"

namespace ranklab {

struct LinearQuantizer::Use {
  TensorRole role = TensorRole::kActivation;
  Along along = Along::kColumns;
  Communicator* rows_group = nullptr;
  Communicator* cols_group = nullptr;
  bool of_tokens = false;    // rows are tokens at known positions
  bool out_is_rows = false;  // the output features are rows (weights)
  bool out_is_cols = false;  // the output features are columns (gradients)
  const char* product = "";  // with the module, names the stream of stochastic rounding
  TokenRows rows = {};
  bool noted = false;
  bool codes = true;  // true for a product; false if another rounding follows
  bool both_ways = false;
  bool along_columns_first = false;  // OperandRounding's
  RoundedOperand* made = nullptr;    // the result of an earlier rounding, usable here as well
  at::Tensor* scale = nullptr;       // scale of the whole tensor: used if it is defined, otherwise stored for later
};

// What ends at the boundaries of fused parts.
enum class LinearQuantizer::PartBounds { kNone, kGroups, kNoise };

LinearQuantizer::LinearQuantizer(QuantizerBook& book, ModulePrecision precision, LinearForm form)
    : book_(book), precision_(std::move(precision)), form_(std::move(form)) {
  if (form_.out_parts.empty()) form_.out_parts = {form_.out};
}

OperandParts LinearQuantizer::out_parts_as(bool wanted, PartBounds bounds, int64_t group) const {
  if (!wanted || bounds == PartBounds::kNone) return {};
  const bool cut = form_.split == ModuleSplit::kColumn;
  const int64_t ranks = cut ? form_.group.size() : 1, rank = cut ? form_.group.rank() : 0;
  OperandParts parts;
  int64_t begin = 0, global = 0;
  bool at_groups = bounds == PartBounds::kGroups;
  for (const int64_t length : form_.out_parts) {
    at_groups = at_groups && begin % group == 0;
    parts.push_back({begin, length / ranks, global + rank * (length / ranks)});
    begin += length / ranks;
    global += length;
  }
  if (at_groups) return {};  // parts end at group boundaries anyway, so the groups are the same without parts
  return parts;
}

OperandParts LinearQuantizer::own_inputs(int64_t count) const {
  if (form_.split != ModuleSplit::kRow || !form_.group.active()) return {};
  return {{0, count, form_.group.rank() * count}};
}

NoiseStream LinearQuantizer::noise_stream(const at::Tensor& matrix, const Use& use) const {
  NoiseStream stream{
      .seed = book_.seed(), .name = module() + "/" + use.product, .columns = use.out_is_cols ? form_.out : form_.in};
  if (use.out_is_rows) {
    for (const OperandPart& part : out_parts_as(true, PartBounds::kNoise, 0))
      for (int64_t row = 0; row < part.size; ++row) stream.rows.push_back(part.global_begin + row);
  } else if (use.rows_group != nullptr && use.rows.sequences > 0) {
    stream.first_position = use.rows_group->rank() * (matrix.size(0) / use.rows.sequences);
  }
  return stream;
}

RoundedOperand LinearQuantizer::rounded(const at::Tensor& matrix, const TensorPrecision& precision, const Use& use) {
  if (!precision.quantized()) return {.values = matrix.to(at::kFloat), .along = use.along};
  const bool groups_end_in_parts =
      precision.granularity == Granularity::kTile || precision.granularity == Granularity::kBlock;
  const PartBounds bounds = groups_end_in_parts ? PartBounds::kGroups : PartBounds::kNone;
  OperandRounding how{.precision = precision,
                      .along = use.along,
                      .rows_group = use.rows_group,
                      .cols_group = use.cols_group,
                      .context_group = use.of_tokens && use.rows.tokens.positions ? book_.context_group() : nullptr,
                      .row_parts = out_parts_as(use.out_is_rows, bounds, precision.block),
                      .codes = use.codes,
                      .both_ways = use.both_ways,
                      .along_columns_first = use.along_columns_first};
  if (use.scale != nullptr) how.device_scale = *use.scale;
  const bool stochastic = precision.rounding == Rounding::kStochastic;
  how.col_parts = out_parts_as(use.out_is_cols, stochastic ? PartBounds::kNoise : bounds, precision.block);
  if (stochastic) {
    if (!use.out_is_cols) how.col_parts = own_inputs(matrix.size(1));
    how.noise = operand_noise(matrix, use.rows, noise_stream(matrix, use));
  }
  const auto role = static_cast<size_t>(use.role);
  if (precision.scale == ScaleRule::kDelayedFp32 && rounding_of(matrix) != nullptr) {
    how.device_amax = book_.device_amax(module(), use.role, matrix.device());
  } else if (precision.scale == ScaleRule::kDelayedFp32) {
    how.amax = book_.delayed_amax(module(), use.role);
  }
  if (use.made != nullptr) {
    charge_rounding(matrix, how, use.made->device_scales);
    return std::exchange(*use.made, {});
  }
  RoundedOperand result = round_operand(matrix, how);
  if (use.scale != nullptr && precision.granularity == Granularity::kTensor) *use.scale = result.device_scales;
  if (use.rows.tokens.trains) note_amax(precision.scale, use.role, result);
  if (use.noted && !matrix.is_meta() && book_.samples(use.rows.tokens) && noted_step_[role] != use.rows.tokens.step) {
    noted_step_[role] = use.rows.tokens.step;
    book_.note(use.role, module(), *precision.format, matrix, on_host(result));
  }
  return result;
}

void LinearQuantizer::note_amax(ScaleRule rule, TensorRole role, const RoundedOperand& operand) {
  const NoCostScope free;
  const auto place = static_cast<size_t>(role);
  if (!operand.device_amax.defined()) {
    amax_[place] = std::max(amax_[place], operand.amax);
  } else if (rule == ScaleRule::kDelayedFp32) {
    at::Tensor& most = device_amax_[place];
    if (!most.defined()) most = at::zeros_like(operand.device_amax);
    at::maximum_out(most, most, operand.device_amax);  // in place, because a graph's replays write to the same address
  }
}

Communicator* LinearQuantizer::sharded_tokens(const TokenRows& rows) const {
  const bool sharded = form_.split == ModuleSplit::kReplicated && form_.group.over(rows.tokens).sharded_sequence();
  return sharded ? form_.group.comm : nullptr;
}

LinearQuantizer::Use LinearQuantizer::activation_use(Along along, const TokenRows& rows) const {
  Use use{.role = TensorRole::kActivation,
          .along = along,
          .rows_group = sharded_tokens(rows),
          .of_tokens = rows.sequences > 0,
          .product = "x",
          .rows = rows};
  if (form_.split == ModuleSplit::kRow && form_.group.active()) use.cols_group = form_.group.comm;
  return use;
}

LinearQuantizer::Use LinearQuantizer::grad_use(Along along, const char* product, const TokenRows& rows) const {
  Use use{.role = TensorRole::kGradient,
          .along = along,
          .rows_group = sharded_tokens(rows),
          .of_tokens = rows.sequences > 0,
          .out_is_cols = true,
          .product = product,
          .rows = rows};
  if (form_.split == ModuleSplit::kColumn && form_.group.active()) use.cols_group = form_.group.comm;
  return use;
}

LinearQuantizer::Side LinearQuantizer::weight_side(const at::Tensor& weight, Along along, const TokenRows& rows,
                                                   KeptRounding* kept) {
  const bool column = form_.split == ModuleSplit::kColumn, row = form_.split == ModuleSplit::kRow;
  Use use{.role = TensorRole::kWeight, .along = along, .out_is_rows = true, .product = "w"};
  if (column && form_.group.active()) use.rows_group = form_.group.comm;
  if (row && form_.group.active()) use.cols_group = form_.group.comm;
  use.rows = rows;
  use.noted = along == Along::kColumns;
  if (kept != nullptr) use.scale = &kept->weight_scale;
  return {precision_.linear.weight, rounded(weight, precision_.linear.weight, use)};
}

at::Tensor LinearQuantizer::product(const Side& a, const Side& b, at::ScalarType type) const {
  const bool low = a.precision.quantized() && b.precision.quantized();
  constexpr double kBitsPerByte = 8;
  const auto item = static_cast<double>(c10::elementSize(type));
  const auto bytes = [&](const Side& side, double elements) {
    return elements * (side.precision.quantized() ? side.precision.format->bits() / kBitsPerByte : item);
  };
  const auto m = static_cast<double>(rows_of(a.operand)), k = static_cast<double>(depth_of(a.operand));
  const auto n = static_cast<double>(rows_of(b.operand));
  const auto bits_of = [](const Side& side) { return static_cast<int>(side.precision.format->bits()); };
  const int bits = low ? std::max(bits_of(a), bits_of(b)) : 16;
  const CostScope cost({"scaled_gemm", KernelShape::product(m, n, k).of_bits(bits)}, 2 * m * n * k,
                       bytes(a, m * k) + bytes(b, k * n) + m * n * item, low ? DType::kFloat8 : dtype_of(type));
  const SumPrecision sum = precision_.linear.sum;
  if (low && a.operand.device_scales.defined())
    return device_product({a.operand, a.precision}, {b.operand, b.precision},
                          rounding_of(a.operand.device_scales)->capability(), type, sum);
  const auto k_by_other = [](const Side& side) {
    const at::Tensor values = values_of(side.operand);
    return side.operand.k_first() ? values : values.t();
  };
  const at::Tensor left = k_by_other(a).t(), right = k_by_other(b);
  if (sum == SumPrecision::kFp32 || !low) return gemm(left, right).to(type);
  return hopper_product({a.operand, *a.precision.format}, {b.operand, *b.precision.format},
                        sum == SumPrecision::kHopperPromoted)
      .to(type);
}

at::Tensor LinearQuantizer::plain(const at::Tensor& a, const at::Tensor& b) const {
  const at::ScalarType type = scalar_type(precision_.compute);
  return gemm(a.to(type), b.to(type)).to(a.scalar_type());
}

at::Tensor LinearQuantizer::forward(const at::Tensor& x, const at::Tensor& weight, const TokenRows& rows,
                                    KeptRounding* kept) {
  const LinearPrecision& p = precision_.linear;
  if (!p.quantized()) return plain(x, weight.t());
  Use use = activation_use(Along::kColumns, rows);
  use.noted = true;
  if (kept != nullptr && !p.hadamard) use.scale = &kept->activation_scale;
  const Side left{p.activation, rounded(x, p.activation, use)};
  return product(left, weight_side(weight, Along::kColumns, rows, kept), x.scalar_type());
}

at::Tensor LinearQuantizer::input_grad(const at::Tensor& grad, const at::Tensor& weight, const TokenRows& rows,
                                       KeptRounding* kept, bool keeps_grad) {
  const LinearPrecision& p = precision_.linear;
  if (!p.quantized()) return plain(grad, weight);
  Use use = grad_use(Along::kColumns, "dx", rows);
  use.noted = true;
  // The weight's gradient needs other values if they are transformed first, and other scales if there is one per row.
  use.both_ways = keeps_grad && kept != nullptr && !p.hadamard && p.gradient.granularity == Granularity::kTensor;
  Side left{p.gradient, rounded(grad, p.gradient, use)};
  if (left.operand.other_codes.defined()) {
    const at::Tensor turned = std::move(left.operand.other_codes);
    kept->grad = left.operand;
    kept->grad.along = Along::kRows;
    kept->grad.codes = turned;
  }
  return product(left, weight_side(weight, Along::kRows, rows, kept), grad.scalar_type());
}

LinearQuantizer::Side LinearQuantizer::grad_side(const at::Tensor& grad, const TokenRows& rows, KeptRounding* kept) {
  const LinearPrecision& p = precision_.linear;
  Use use = grad_use(Along::kRows, "dw", rows);
  if (kept != nullptr && kept->grad.codes.defined()) use.made = &kept->grad;
  return {p.gradient, rounded(transformed(grad), p.gradient, use)};
}

at::Tensor LinearQuantizer::weight_grad(const at::Tensor& grad, const at::Tensor& x, const TokenRows& rows,
                                        KeptRounding* kept) {
  const LinearPrecision& p = precision_.linear;
  if (!p.quantized()) return plain(grad.t(), x);
  const Side left = grad_side(grad, rows, kept);
  Use use = activation_use(Along::kRows, rows);
  at::Tensor input = x;
  if (p.requantize_activation && p.hadamard) {  // the transform is applied between the two roundings
    Use first = use;
    first.along = Along::kColumns;
    first.codes = false;
    input = values_of(rounded(x, p.activation, first));
  } else if (p.requantize_activation) {
    use.along_columns_first = true;
  } else if (kept != nullptr && !p.hadamard) {
    use.scale = &kept->activation_scale;
  }
  const Side right{p.activation, rounded(transformed(input), p.activation, use)};
  return product(left, right, x.scalar_type());
}

at::Tensor LinearQuantizer::transformed(const at::Tensor& matrix) const {
  if (!precision_.linear.hadamard) return matrix;
  const MemoryScope memory(MemoryCategory::kBuffers);
  const NoCostScope free;  // it is part of the rounding kernel
  return hadamard_transform(book_.hadamard(), matrix);
}

std::array<float, 3> LinearQuantizer::take_amax() {
  std::array<float, 3> seen = std::exchange(amax_, {});
  for (size_t role = 0; role < seen.size(); ++role) {
    at::Tensor& most = device_amax_[role];
    if (!most.defined()) continue;
    const NoCostScope free;
    seen[role] = std::max(seen[role], most.item<float>());
    most.zero_();
  }
  return seen;
}

}  // namespace ranklab
