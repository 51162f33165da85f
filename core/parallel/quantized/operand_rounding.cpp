#include "core/parallel/quantized/operand_rounding.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/parallel/quantized/device_operand.h"
#include "core/precision/device_rounding.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {

float visible_amax(float amax) { return std::isnan(amax) ? std::numeric_limits<float>::infinity() : amax; }

void agree_on_amax(std::span<float> amax, Communicator* group, at::Device device) {
  if (group == nullptr || group->size() == 1) return;
  const MemoryScope memory(MemoryCategory::kBuffers);
  at::Tensor all = at::empty({static_cast<int64_t>(amax.size())}, at::kFloat);
  std::copy(amax.begin(), amax.end(), all.mutable_data_ptr<float>());
  all = group->all_reduce(all.to(device), ReduceOp::kMax).to(at::kCPU);
  std::copy_n(all.const_data_ptr<float>(), amax.size(), amax.begin());
}

namespace {

MatrixView view_of(const at::Tensor& wide, const OperandPiece& piece) {
  return {wide.const_data_ptr<float>() + piece.row * wide.size(1) + piece.col, piece.rows, piece.cols, wide.size(1)};
}

class Rounder {
 public:
  Rounder(const at::Tensor& matrix, const OperandRounding& how)
      : how_(how), cost_(matrix, how), pieces_(operand_pieces(how, matrix.size(0), matrix.size(1))) {
    const MemoryScope memory(MemoryCategory::kBuffers);
    const NoCostScope free;
    wide_ = matrix.to(at::kFloat).contiguous();
  }

  RoundedOperand run() {
    find_amax();
    RoundedOperand result;
    result.amax = *std::ranges::max_element(amax_);
    const float whole = tensor_amax(result.amax);
    const Granularity granularity = how_.precision.granularity;
    if (granularity == Granularity::kTensor) std::ranges::fill(amax_, whole);
    if (granularity == Granularity::kRow) {
      agree_on_amax(amax_, how_.along == Along::kColumns ? how_.cols_group : how_.rows_group);
      if (how_.along == Along::kRows) agree_on_amax(amax_, how_.context_group);
    }
    if (!wide_.is_meta()) {
      scales_.resize(amax_.size());
      block_scales(how_.precision, amax_, whole, scales_);
    }
    result.values = round();
    result.along = how_.along;
    result.pieces = std::move(pieces_);
    result.scales = std::move(scales_);
    return result;
  }

 private:
  size_t groups() const { return pieces_.back().first_group + pieces_.back().group_count; }

  void find_amax() {
    cost_.charge_amax();
    const NoCostScope charged;
    if (wide_.is_meta()) {  // on shapes, only the exchange of numbers between ranks remains
      amax_.resize(how_.precision.granularity == Granularity::kRow ? groups() : 1);
      return;
    }
    amax_.resize(groups());
    for (const OperandPiece& p : pieces_)
      group_amax(view_of(wide_, p), p.groups, std::span(amax_).subspan(p.first_group, p.group_count));
    for (float& amax : amax_) amax = visible_amax(amax);
  }

  float tensor_amax(float own) const {
    if (how_.amax) return *how_.amax;
    if (!scale_of_tensor(how_.precision)) return own;
    std::array<float, 1> whole = {own};
    agree_on_amax(whole, how_.rows_group);
    agree_on_amax(whole, how_.cols_group);
    agree_on_amax(whole, how_.context_group);
    return whole[0];
  }

  at::Tensor round() {
    const CostScope cost = cost_.of_rounding();
    const MemoryScope memory(MemoryCategory::kBuffers);
    at::Tensor out = at::empty(wide_.sizes(), wide_.options());
    for (const OperandPiece& piece : pieces_) round_piece(piece, out);
    return out;
  }

  void round_piece(const OperandPiece& p, at::Tensor& out) {
    if (p.cols == out.size(1)) {
      if (!out.is_meta()) write_rounded(p, out.mutable_data_ptr<float>() + p.row * p.cols);
      return;
    }
    at::Tensor part = at::empty({p.rows, p.cols}, out.options());
    if (!part.is_meta()) write_rounded(p, part.mutable_data_ptr<float>());
    out.narrow(0, p.row, p.rows).narrow(1, p.col, p.cols).copy_(part);
  }

  void write_rounded(const OperandPiece& p, float* out) const {
    const auto scales = std::span<const BlockScale>(scales_).subspan(p.first_group, p.group_count);
    std::vector<uint64_t> rows;
    RoundingNoise noise;
    if (how_.noise.stream) {
      rows = row_numbers(p);
      noise = {&*how_.noise.stream, rows, p.global_col, how_.noise.columns};
    }
    const RoundingNoise* drawn = how_.noise.stream ? &noise : nullptr;
    quantize_dequantize(view_of(wide_, p), p.groups, scales, *how_.precision.format, drawn, out);
  }

  std::vector<uint64_t> row_numbers(const OperandPiece& p) const {
    std::vector<uint64_t> numbers(static_cast<size_t>(p.rows));
    for (int64_t row = 0; row < p.rows; ++row) {
      uint64_t& number = numbers[static_cast<size_t>(row)];
      if (!how_.noise.rows.empty()) {
        number = how_.noise.rows[static_cast<size_t>(p.row + row)];
      } else {
        const float* begin = wide_.const_data_ptr<float>() + (p.row + row) * wide_.size(1);
        number = hash_bytes(begin, sizeof(float) * static_cast<size_t>(wide_.size(1)));
      }
    }
    return numbers;
  }

  const OperandRounding& how_;
  RoundingCost cost_;
  std::vector<OperandPiece> pieces_;
  at::Tensor wide_;
  std::vector<float> amax_;
  std::vector<BlockScale> scales_;
};

}  // namespace

std::vector<OperandPiece> operand_pieces(const OperandRounding& how, int64_t rows, int64_t cols) {
  const OperandParts whole_rows = {{0, rows, 0}}, whole_cols = {{0, cols, 0}};
  std::vector<OperandPiece> pieces;
  size_t groups = 0;
  for (const OperandPart& r : how.row_parts.empty() ? whole_rows : how.row_parts) {
    for (const OperandPart& c : how.col_parts.empty() ? whole_cols : how.col_parts) {
      OperandPiece piece{r.begin, r.size, c.begin, c.size, c.global_begin, {}, groups, 0};
      piece.groups = group_shape(how.precision, how.along, r.size, c.size);
      piece.group_count = static_cast<size_t>(piece.groups.grid_rows(r.size) * piece.groups.grid_cols(c.size));
      groups += piece.group_count;
      pieces.push_back(piece);
    }
  }
  return pieces;
}

int64_t rows_of(const RoundedOperand& o) {
  return o.codes.defined() ? o.codes.size(0) : o.values.size(o.k_first() ? 1 : 0);
}

int64_t depth_of(const RoundedOperand& o) {
  return o.codes.defined() ? o.codes.size(1) : o.values.size(o.k_first() ? 0 : 1);
}

bool scale_of_tensor(const TensorPrecision& precision) {
  return precision.granularity == Granularity::kTensor || precision.scale == ScaleRule::kE4M3;
}

RoundingCost::RoundingCost(const at::Tensor& matrix, const OperandRounding& how)
    : RoundingCost(matrix.numel(), matrix.itemsize(), how) {}

RoundingCost::RoundingCost(int64_t elements, size_t element_bytes, const OperandRounding& how)
    : has_amax_pass_(scale_of_tensor(how.precision) && !how.amax.has_value() && !how.device_amax.defined()),
      read_bytes_(static_cast<double>(elements) * static_cast<double>(element_bytes)) {
  constexpr double kBitsPerByte = 8;
  written_bytes_ = static_cast<double>(elements) * how.precision.format->bits() / kBitsPerByte;
}

void RoundingCost::charge_amax() const {
  if (!has_amax_pass_) return;
  const CostScope pass("amax", 0, read_bytes_, DType::kFloat32);
}

CostScope RoundingCost::of_rounding() const {
  return {{"quantize", KernelShape::quantize()}, 0, read_bytes_ + written_bytes_, DType::kFloat32};
}

OperandRounding first_rounding(const OperandRounding& how) {
  OperandRounding first = how;
  first.along = Along::kColumns;
  first.codes = first.along_columns_first = false;
  return first;
}

OperandRounding second_rounding(const OperandRounding& how) {
  OperandRounding second = how;
  second.along_columns_first = false;
  return second;
}

RoundedOperand round_operand(const at::Tensor& matrix, const OperandRounding& how) {
  const DeviceRounding* device = rounding_of(matrix);
  if (device == nullptr && (matrix.is_cpu() || matrix.is_meta())) {
    if (!how.along_columns_first) return Rounder(matrix, how).run();
    return Rounder(Rounder(matrix, first_rounding(how)).run().values, second_rounding(how)).run();
  }
  RANKLAB_CHECK(device != nullptr, ErrorKind::kEnvironment, .where = "quantization",
                .what = "nothing here quantizes numbers on this device", .got = matrix.device().str(),
                .want = "a GPU whose backend brings the kernels, or the CPU", .fix = "use --bf16");
  return round_on_device(matrix, how, *device);
}

}  // namespace ranklab
