#include "core/parallel/quantized/device_operand.h"

#include <span>
#include <string_view>
#include <vector>

#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

at::ScalarType code_type(const NumberFormat& format) {
  return format.name == "e5m2" ? at::kFloat8_e5m2 : at::kFloat8_e4m3fn;
}

void agree(at::Tensor& amax, Communicator* group) {
  if (group != nullptr && group->size() > 1) amax = group->all_reduce(amax, ReduceOp::kMax);
}

class DeviceRounder {
 public:
  DeviceRounder(const at::Tensor& matrix, const OperandRounding& how, const DeviceRounding& device)
      : how_(how), device_(device), pieces_(operand_pieces(how, matrix.size(0), matrix.size(1))) {
    const bool narrow = matrix.scalar_type() == at::kBFloat16;
    x_ = (narrow ? matrix : matrix.to(at::kFloat)).contiguous();
  }

  RoundedOperand run() {
    RoundedOperand result;
    if (at_once()) {
      round_at_once(result);
      result.pieces = std::move(pieces_);
      return result;
    }
    at::Tensor amax = group_amax();
    result.device_amax = amax.numel() > 0 ? amax.amax().view({1}) : at::zeros({1}, amax.options());
    const at::Tensor whole = tensor_amax(result.device_amax);
    if (how_.precision.granularity == Granularity::kTensor) amax = whole.expand({amax.numel()}).contiguous();
    if (how_.precision.granularity == Granularity::kRow) {
      agree(amax, how_.along == Along::kColumns ? how_.cols_group : how_.rows_group);
      if (how_.along == Along::kRows) agree(amax, how_.context_group);
    }
    result.device_scales = at::empty({amax.numel()}, amax.options());
    device_.make_scales(scale_maker(how_.precision, 0), amax.const_data_ptr<float>(), amax.numel(),
                        whole.const_data_ptr<float>(), result.device_scales.mutable_data_ptr<float>());
    round(result);
    result.pieces = std::move(pieces_);
    return result;
  }

 private:
  at::TensorOptions floats() const { return x_.options().dtype(at::kFloat); }

  DeviceMatrix matrix_of(const OperandPiece& p) const {
    const auto* begin = static_cast<const char*>(x_.const_data_ptr());
    return {.x = begin + static_cast<int64_t>(x_.itemsize()) * (p.row * x_.size(1) + p.col),
            .bf16 = x_.scalar_type() == at::kBFloat16,
            .rows = p.rows,
            .cols = p.cols,
            .stride = x_.size(1),
            .height = p.groups.height,
            .width = p.groups.width};
  }

  int64_t group_count() const { return static_cast<int64_t>(pieces_.back().first_group + pieces_.back().group_count); }

  // Whether one pass suffices: no group spans ranks, and a group's elements are adjacent for a team of threads.
  bool at_once() const {
    const TensorPrecision& p = how_.precision;
    const bool tiles = p.granularity == Granularity::kTile && how_.along == Along::kColumns;
    return (tiles || p.granularity == Granularity::kBlock) && p.rounding == Rounding::kNearest && !scale_of_tensor(p) &&
           how_.col_parts.size() <= 1;
  }

  void round_at_once(RoundedOperand& result) const {
    const MemoryScope memory(MemoryCategory::kBuffers);
    result.values = at::empty(x_.sizes(), floats());
    result.device_scales = at::empty({group_count()}, floats());
    for (const OperandPiece& p : pieces_)
      device_.round_at_once(matrix_of(p), rounding_grid(*how_.precision.format), scale_maker(how_.precision, 0),
                            result.device_scales.mutable_data_ptr<float>() + p.first_group,
                            result.values.mutable_data_ptr<float>() + p.row * x_.size(1));
  }

  at::Tensor group_amax() const {
    at::Tensor amax = at::zeros({group_count()}, floats());
    for (const OperandPiece& p : pieces_)
      device_.group_amax(matrix_of(p), amax.mutable_data_ptr<float>() + p.first_group);
    return amax;
  }

  // The amax [1] that scales are made from; does not modify `own`.
  at::Tensor tensor_amax(const at::Tensor& own) const {
    if (how_.device_amax.defined()) return how_.device_amax;
    if (how_.amax) return at::full({1}, *how_.amax, floats());
    if (!scale_of_tensor(how_.precision)) return own;
    at::Tensor whole = own.clone();
    agree(whole, how_.rows_group);
    agree(whole, how_.cols_group);
    agree(whole, how_.context_group);
    return whole;
  }

  // Numbers that key the noise of the rows: those given, or else hashes of the rows' contents.
  at::Tensor row_numbers() const {
    if (how_.noise.stream == nullptr) return {};
    at::Tensor numbers = at::empty({x_.size(0)}, x_.options().dtype(at::kLong));
    if (how_.noise.rows.empty()) {
      const OperandPiece whole{.rows = x_.size(0), .cols = x_.size(1)};
      device_.hash_rows(matrix_of(whole), reinterpret_cast<uint64_t*>(numbers.mutable_data_ptr<int64_t>()));
      return numbers;
    }
    std::vector<int64_t> rows(how_.noise.rows.begin(), how_.noise.rows.end());
    rows.resize(static_cast<size_t>(x_.size(0)));
    return numbers.copy_(at::from_blob(rows.data(), {x_.size(0)}, at::TensorOptions(at::kLong)));
  }

  DeviceNoise noise_of(const OperandPiece& p, const at::Tensor& rows) const {
    if (how_.noise.stream == nullptr) return {};
    const auto &key = how_.noise.stream->key(), &stream = how_.noise.stream->stream();
    return {.key = {{key[0], key[1]}, {stream[0], stream[1]}},
            .row_numbers = reinterpret_cast<const uint64_t*>(rows.const_data_ptr<int64_t>()) + p.row,
            .first_column = p.global_col,
            .columns = how_.noise.columns};
  }

  void round(RoundedOperand& result) const {
    const MemoryScope memory(MemoryCategory::kBuffers);
    const NumberFormat& format = *how_.precision.format;
    const bool codes = how_.codes && codes_fit(how_);
    at::Tensor out = at::empty(x_.sizes(), codes ? x_.options().dtype(at::kByte) : floats());
    const at::Tensor rows = row_numbers();
    for (const OperandPiece& p : pieces_) {
      const int64_t begin = p.row * out.size(1) + p.col;
      DeviceRounded to{.stride = out.size(1)};
      if (codes) {
        to.codes = out.mutable_data_ptr<uint8_t>() + begin;
      } else {
        to.values = out.mutable_data_ptr<float>() + begin;
      }
      device_.round(matrix_of(p), rounding_grid(format), result.device_scales.const_data_ptr<float>() + p.first_group,
                    noise_of(p, rows), to);
    }
    (codes ? result.codes : result.values) = codes ? out.view(code_type(format)) : out;
  }

  const OperandRounding& how_;
  const DeviceRounding& device_;
  std::vector<OperandPiece> pieces_;
  at::Tensor x_;
};

}  // namespace

const DeviceRounding* rounding_of(const at::Tensor& x) {
  if (x.is_meta()) return nullptr;
  return device_rounding(x.is_cpu() ? RoundedTensors::kHost : RoundedTensors::kGpu);
}

RoundedOperand round_on_device(const at::Tensor& matrix, const OperandRounding& how, const DeviceRounding& device) {
  return DeviceRounder(matrix, how, device).run();
}

bool codes_fit(const OperandRounding& how) {
  const TensorPrecision& p = how.precision;
  const bool few_scales = p.granularity == Granularity::kTensor || p.granularity == Granularity::kRow;
  return p.quantized() && p.format->bits() == kCodeBits && few_scales && p.rounding == Rounding::kNearest &&
         how.row_parts.size() <= 1 && how.col_parts.size() <= 1;
}

at::Tensor values_of(const RoundedOperand& operand) {
  if (!operand.codes.defined()) return operand.values;
  const OperandPiece& whole = operand.pieces.at(0);
  const int64_t grid_rows = whole.groups.grid_rows(whole.rows), grid_cols = whole.groups.grid_cols(whole.cols);
  return operand.codes.to(at::kFloat) * operand.device_scales.reshape({grid_rows, grid_cols});
}

RoundedOperand on_host(const RoundedOperand& operand) {
  if (!operand.device_scales.defined()) return operand;
  RoundedOperand result{.values = values_of(operand).cpu(), .pieces = operand.pieces};
  if (operand.device_amax.defined()) result.amax = operand.device_amax.item<float>();
  const at::Tensor scales = operand.device_scales.cpu();
  for (const float scale : std::span(scales.const_data_ptr<float>(), static_cast<size_t>(scales.numel())))
    result.scales.push_back({scale, scale == 0 ? 0.0F : 1 / scale});
  return result;
}

}  // namespace ranklab
