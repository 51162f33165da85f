#include "core/parallel/quantized/device_operand.h"

#include <span>
#include <vector>

#include "core/precision/recipe.h"
#include "core/precision/scale_maker.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"

namespace ranklab {
namespace {

bool has_peers(const Communicator* group) { return group != nullptr && group->size() > 1; }

void agree(at::Tensor& amax, Communicator* group) {
  if (has_peers(group)) amax = group->all_reduce(amax, ReduceOp::kMax);
}

void agree_everywhere(at::Tensor& amax, const OperandRounding& how) {
  agree(amax, how.rows_group);
  agree(amax, how.cols_group);
  agree(amax, how.context_group);
}

// A scale that was kept needs no agreement. But the host agrees on it again, and the virtual clock charges for that;
// so, where a virtual clock runs, the numbers are exchanged anyway, also in a pass that is being recorded, so that
// replays make the same calls.
void charge_agreement(const RoundingCost& cost, const OperandRounding& how, const at::Tensor& number) {
  if (!cost.has_amax_pass() || !has_virtual_clock()) return;
  at::Tensor again = number;
  agree_everywhere(again, how);
}

class DeviceRounder {
 public:
  DeviceRounder(const at::Tensor& matrix, const OperandRounding& how, const DeviceRounding& device)
      : how_(how),
        cost_(matrix, how),
        device_(device),
        codes_(how.codes && codes_fit(how, device.capability())),
        pieces_(operand_pieces(how, matrix.size(0), matrix.size(1))) {
    const NoCostScope charged;
    const bool narrow = matrix.scalar_type() == at::kBFloat16;
    x_ = (narrow ? matrix : matrix.to(at::kFloat)).contiguous();
  }

  RoundedOperand run() {
    const bool codes_at_once = casts_at_once();
    if (how_.along_columns_first && !codes_at_once) {
      const at::Tensor first = values_of(DeviceRounder(x_, first_rounding(how_), device_).run());
      return DeviceRounder(first, second_rounding(how_), device_).run();
    }
    RoundedOperand result;
    result.along = how_.along;
    cost_.charge_amax();
    if (how_.device_scale.defined() && codes_) {
      charge_agreement(cost_, how_, how_.device_scale);
      result.device_scales = how_.device_scale;
      round(result);
      result.pieces = std::move(pieces_);
      return result;
    }
    if (codes_at_once || at_once()) {
      if (codes_at_once) {
        cast_at_once(result);
      } else {
        round_at_once(result);
      }
      result.pieces = std::move(pieces_);
      return result;
    }
    at::Tensor amax = group_amax();
    const at::Tensor own = largest_of(amax);
    // The tensor's own amax is part of the result for formats whose scale follows from it, and where a rank keeps it
    // for later steps.
    if (!in_groups()) result.device_amax = own;
    const at::Tensor whole = tensor_amax(own);
    if (how_.precision.granularity == Granularity::kTensor) {
      const NoCostScope charged;
      amax = whole.expand({amax.numel()}).contiguous();
    }
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

  bool is_agreed_on() const {
    return has_peers(how_.rows_group) || has_peers(how_.cols_group) || has_peers(how_.context_group);
  }

  bool in_groups() const {
    const Granularity granularity = how_.precision.granularity;
    return (granularity == Granularity::kTile || granularity == Granularity::kBlock) &&
           !scale_of_tensor(how_.precision);
  }

  // Whether one pass suffices: no group spans ranks, and a group's elements are adjacent for a block of threads.
  bool at_once() const {
    const TensorPrecision& p = how_.precision;
    const bool adjacent = p.granularity == Granularity::kBlock || how_.along == Along::kColumns;
    return in_groups() && adjacent && !codes_ && p.rounding == Rounding::kNearest && how_.col_parts.size() <= 1;
  }

  // Whether one pass over the matrix gives scales and codes.
  bool casts_at_once() const {
    if (!codes_ || !in_groups() || how_.both_ways) return false;
    const DeviceMatrix matrix = matrix_of(pieces_.at(0));
    const bool of_columns = matrix.width == 1;
    return (of_columns || !how_.along_columns_first) &&
           device_.casts_at_once(matrix, rounding_grid(*how_.precision.format), scale_maker(how_.precision, 0));
  }

  // The largest amax of the groups, [1]; unused if each group has its own scale.
  at::Tensor largest_of(const at::Tensor& amax) const {
    const NoCostScope charged;
    if (amax.numel() == 0) return at::zeros({1}, amax.options());
    return in_groups() || amax.numel() == 1 ? amax.narrow(0, 0, 1) : amax.amax().view({1});
  }

  void round_at_once(RoundedOperand& result) const {
    const CostScope cost = cost_.of_rounding();
    const MemoryScope memory(MemoryCategory::kBuffers);
    result.values = at::empty(x_.sizes(), floats());
    result.device_scales = at::empty({group_count()}, floats());
    for (const OperandPiece& p : pieces_)
      device_.round_at_once(matrix_of(p), rounding_grid(*how_.precision.format), scale_maker(how_.precision, 0),
                            result.device_scales.mutable_data_ptr<float>() + p.first_group,
                            result.values.mutable_data_ptr<float>() + p.row * x_.size(1));
  }

  void cast_at_once(RoundedOperand& result) const {
    if (how_.along_columns_first) {
      const CostScope first = cost_.of_rounding();
    }
    const RoundingCost of_values(x_.numel(), sizeof(float), how_);
    const CostScope cost = (how_.along_columns_first ? of_values : cost_).of_rounding();
    const MemoryScope memory(MemoryCategory::kBuffers);
    result.device_scales = at::empty({group_count()}, floats());
    const DeviceRounded out = codes_in(result);
    device_.cast_at_once(matrix_of(pieces_.at(0)), rounding_grid(*how_.precision.format),
                         scale_maker(how_.precision, 0), how_.along_columns_first,
                         result.device_scales.mutable_data_ptr<float>(), out);
  }

  at::Tensor group_amax() const {
    const NoCostScope charged;
    at::Tensor amax = at::empty({group_count()}, floats());
    for (const OperandPiece& p : pieces_)
      device_.group_amax(matrix_of(p), amax.mutable_data_ptr<float>() + p.first_group);
    return amax;
  }

  // The amax [1] from which scales are computed; does not modify `own`.
  at::Tensor tensor_amax(const at::Tensor& own) const {
    if (how_.device_amax.defined()) return how_.device_amax;
    at::Tensor whole = own;
    {
      const NoCostScope charged;
      if (how_.amax) return at::full({1}, *how_.amax, floats());
      if (!scale_of_tensor(how_.precision) || !is_agreed_on()) return own;
      whole = own.clone();
    }
    agree_everywhere(whole, how_);
    return whole;
  }

  // The numbers that key the noise of each row: those given, or else hashes of the rows' contents.
  at::Tensor row_numbers() const {
    if (!how_.noise.stream || how_.noise.device_rows.defined()) return how_.noise.device_rows;
    at::Tensor numbers = at::empty({x_.size(0)}, x_.options().dtype(at::kLong));
    const OperandPiece whole{.rows = x_.size(0), .cols = x_.size(1)};
    device_.hash_rows(matrix_of(whole), reinterpret_cast<uint64_t*>(numbers.mutable_data_ptr<int64_t>()));
    return numbers;
  }

  DeviceNoise noise_of(const OperandPiece& p, const at::Tensor& rows) const {
    const OperandNoise& noise = how_.noise;
    if (!noise.stream) return {};
    const auto &key = noise.stream->key(), &stream = noise.stream->stream();
    const at::Tensor& step_key = noise.step_key;
    return {.key = {{key[0], key[1]}, {stream[0], stream[1]}},
            .step_key =
                step_key.defined() ? reinterpret_cast<const uint64_t*>(step_key.const_data_ptr<int64_t>()) : nullptr,
            .name = noise.name_key,
            .row_numbers = reinterpret_cast<const uint64_t*>(rows.const_data_ptr<int64_t>()) + p.row,
            .first_column = p.global_col,
            .columns = noise.columns};
  }

  void round(RoundedOperand& result) const {
    const CostScope cost = cost_.of_rounding();
    const MemoryScope memory(MemoryCategory::kBuffers);
    const at::Tensor rows = row_numbers();
    if (codes_) {
      const DeviceRounded out = codes_in(result);
      device_.round(matrix_of(pieces_.at(0)), rounding_grid(*how_.precision.format),
                    result.device_scales.const_data_ptr<float>(), {}, out);
      return;
    }
    result.values = at::empty(x_.sizes(), floats());
    for (const OperandPiece& p : pieces_) {
      float* begin = result.values.mutable_data_ptr<float>() + p.row * x_.size(1) + p.col;
      device_.round(matrix_of(p), rounding_grid(*how_.precision.format),
                    result.device_scales.const_data_ptr<float>() + p.first_group, noise_of(p, rows),
                    {.values = begin, .stride = x_.size(1)});
    }
  }

  // Allocates the codes of `result`, which is a single piece.
  DeviceRounded codes_in(RoundedOperand& result) const {
    const auto empty = [&](bool wanted, int64_t rows, int64_t cols) {
      return wanted ? at::empty({rows, cols}, x_.options().dtype(at::kByte)) : at::Tensor();
    };
    const bool lying = how_.along == Along::kColumns || how_.both_ways;
    const bool turned = how_.along == Along::kRows || how_.both_ways;
    at::Tensor along_columns = empty(lying, x_.size(0), x_.size(1)), along_rows = empty(turned, x_.size(1), x_.size(0));
    const auto typed = [&](const at::Tensor& x) { return x.defined() ? x.view(code_type(*how_.precision.format)) : x; };
    result.codes = typed(how_.along == Along::kColumns ? along_columns : along_rows);
    result.other_codes = typed(how_.along == Along::kColumns ? along_rows : along_columns);
    const auto bytes = [](at::Tensor& x) { return x.defined() ? x.mutable_data_ptr<uint8_t>() : nullptr; };
    return {
        .codes = bytes(along_columns), .stride = x_.size(1), .turned = bytes(along_rows), .turned_stride = x_.size(0)};
  }

  const OperandRounding& how_;
  RoundingCost cost_;
  const DeviceRounding& device_;
  bool codes_;
  std::vector<OperandPiece> pieces_;
  at::Tensor x_;
};

}  // namespace

const DeviceRounding* rounding_of(const at::Tensor& x) {
  if (x.is_meta()) return nullptr;
  return device_rounding(x.is_cpu() ? RoundedTensors::kHost : RoundedTensors::kGpu);
}

at::ScalarType code_type(const NumberFormat& format) {
  return &format == e5m2() ? at::kFloat8_e5m2 : at::kFloat8_e4m3fn;
}

RoundedOperand round_on_device(const at::Tensor& matrix, const OperandRounding& how, const DeviceRounding& device) {
  return DeviceRounder(matrix, how, device).run();
}

bool codes_fit(const OperandRounding& how, int capability) {
  const TensorPrecision& p = how.precision;
  const bool few_scales = p.granularity == Granularity::kTensor || p.granularity == Granularity::kRow;
  const bool in_groups = capability == kHopperCapability && has_scaled_groups(p);
  return p.quantized() && p.format->bits() == kCodeBits && (few_scales || in_groups) &&
         p.rounding == Rounding::kNearest && how.row_parts.size() <= 1 && how.col_parts.size() <= 1;
}

at::Tensor scales_for(const at::Tensor& of_groups, const GroupShape& groups, int64_t rows, int64_t cols) {
  at::Tensor scales = of_groups.reshape({groups.grid_rows(rows), groups.grid_cols(cols)});
  // Expands scales to one per element, unless a group is one element or the whole dimension.
  const auto repeat = [&](int64_t dim, int64_t length, int64_t group) {
    if (group == 1 || group >= length) return;
    auto sizes = scales.sizes().vec();
    sizes.insert(sizes.begin() + dim + 1, group);
    scales = scales.unsqueeze(dim + 1).expand(sizes).flatten(dim, dim + 1).narrow(dim, 0, length);
  };
  repeat(0, rows, groups.height);
  repeat(1, cols, groups.width);
  return scales;
}

at::Tensor values_of(const RoundedOperand& operand) {
  if (!operand.codes.defined()) return operand.values;
  const OperandPiece& whole = operand.pieces.at(0);
  const at::Tensor scales = scales_for(operand.device_scales, whole.groups, whole.rows, whole.cols);
  const at::Tensor numbers = operand.codes.to(at::kFloat);
  return (operand.k_first() ? numbers.t() : numbers) * scales;
}

void charge_rounding(const at::Tensor& matrix, const OperandRounding& how, const at::Tensor& scale) {
  const RoundingCost cost(matrix, how);
  cost.charge_amax();
  charge_agreement(cost, how, scale);
  const CostScope rounding = cost.of_rounding();
}

RoundedOperand on_host(const RoundedOperand& operand) {
  const NoCostScope unseen;
  if (!operand.device_scales.defined()) return operand;
  RoundedOperand result{
      .values = values_of(operand).cpu().contiguous(), .along = operand.along, .pieces = operand.pieces};
  if (operand.device_amax.defined()) result.amax = operand.device_amax.item<float>();
  const at::Tensor scales = operand.device_scales.cpu();
  for (const float scale : std::span(scales.const_data_ptr<float>(), static_cast<size_t>(scales.numel())))
    result.scales.push_back({scale, inverse_scale(scale)});
  return result;
}

}  // namespace ranklab
