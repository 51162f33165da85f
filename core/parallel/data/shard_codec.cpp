#include "core/parallel/data/shard_codec.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/parallel/data/device_codes.h"
#include "core/parallel/quantized/device_operand.h"
#include "core/parallel/quantized/operand_rounding.h"
#include "core/precision/rounding_grid.h"
#include "core/precision/scaled_matrix.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

const std::byte* begin_of(const at::Tensor& tensor) { return static_cast<const std::byte*>(tensor.const_data_ptr()); }

}  // namespace

template <typename Visit>
void ShardCodec::each_piece(int member, const Visit& visit) const {
  const int64_t share = elements_ / group_.size(), from = share * member, to = from + share;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const CodedParameter& p = parameters_[i];
    const int64_t begin = std::max(from, p.offset), end = std::min(to, p.offset + p.elements);
    if (begin < end) visit(i, begin - p.offset, end - p.offset, begin - from);
  }
}

template <typename Visit>
void ShardCodec::each_run(size_t parameter, int64_t begin, int64_t end, const Visit& visit) const {
  for (const CodedPart& part : parts_of(parameters_[parameter])) {
    const auto [height, width] = part.groups;
    const int64_t cols = part.cols, stop = std::min(end, part.end());
    for (int64_t at = std::max(begin, part.begin); at < stop;) {
      const int64_t row = (at - part.begin) / cols, col = (at - part.begin) % cols;
      const int64_t count = std::min(std::min((col / width + 1) * width, cols) - col, stop - at);
      const int64_t group = part.first_group + row / height * part.grid_cols() + col / width;
      visit(first_group_[parameter] + static_cast<size_t>(group), at, count);
      at += count;
    }
  }
}

ShardCodec::ShardCodec(std::vector<CodedParameter> parameters, int64_t elements, at::ScalarType type,
                       Communicator& group)
    : parameters_(std::move(parameters)), elements_(elements), type_(type), group_(group) {
  for (const CodedParameter& p : parameters_) {
    first_group_.push_back(groups_);
    if (p.precision.quantized()) groups_ += static_cast<size_t>(group_count(p));
  }
  amax_.assign(groups_, 0.0F);
  scales_.resize(groups_);
  for (int member = 0; member < group_.size(); ++member) {
    int64_t bytes = 0;
    each_piece(member, [&](size_t i, int64_t begin, int64_t end, int64_t) {
      bytes +=
          (end - begin) * (parameters_[i].precision.quantized() ? 1 : static_cast<int64_t>(c10::elementSize(type_)));
    });
    rows_.push_back(bytes);
  }
}

void ShardCodec::find_amax(const float* numbers) {
  each_piece(group_.rank(), [&](size_t i, int64_t begin, int64_t end, int64_t offset) {
    if (!parameters_[i].precision.quantized()) return;
    each_run(i, begin, end, [&](size_t group, int64_t at, int64_t count) {
      float most = 0;
      group_amax({numbers + offset + (at - begin), 1, count, count}, {1, count}, {&most, 1});
      amax_[group] = std::max(amax_[group], visible_amax(most));
    });
  });
}

void ShardCodec::agree(const at::Tensor& shard) {
  if (const DeviceRounding* device = rounding_of(shard)) return agree_on(*device, shard);
  std::ranges::fill(amax_, 0.0F);
  {
    const CostScope cost("amax", 0, static_cast<double>(shard.nbytes()), DType::kFloat32);
    const MemoryScope memory(MemoryCategory::kBuffers);
    const at::Tensor wide = shard.to(at::kFloat);
    if (!wide.is_meta()) find_amax(wide.const_data_ptr<float>());
  }
  agree_on_amax(amax_, &group_, shard.device());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const size_t first = first_group_[i], end = i + 1 < parameters_.size() ? first_group_[i + 1] : groups_;
    if (parameters_[i].precision.quantized())
      block_scales(parameters_[i].precision, std::span(amax_).subspan(first, end - first), 0,
                   std::span(scales_).subspan(first, end - first));
  }
}

at::Tensor ShardCodec::pack(const at::Tensor& shard) const {
  const CostScope cost("quantize", 0, 2 * static_cast<double>(shard.nbytes()), DType::kFloat32);
  const MemoryScope memory(MemoryCategory::kBuffers);
  if (const DeviceRounding* device = rounding_of(shard)) return packed_by(*device, shard);
  const at::Tensor wide = shard.to(at::kFloat);
  at::Tensor packed = at::empty({rows_[static_cast<size_t>(group_.rank())]}, shard.options().dtype(at::kByte));
  if (!shard.is_meta())
    write(shard, wide.const_data_ptr<float>(), reinterpret_cast<std::byte*>(packed.mutable_data_ptr<uint8_t>()));
  return packed;
}

void ShardCodec::write(const at::Tensor& here, const float* numbers, std::byte* out) const {
  const auto item = static_cast<size_t>(here.itemsize());
  std::vector<float> rounded;
  each_piece(group_.rank(), [&](size_t i, int64_t begin, int64_t end, int64_t offset) {
    const TensorPrecision& precision = parameters_[i].precision;
    if (!precision.quantized()) {
      const size_t bytes = static_cast<size_t>(end - begin) * item;
      out = std::copy_n(begin_of(here) + static_cast<size_t>(offset) * item, bytes, out);
      return;
    }
    const RoundingGrid grid = rounding_grid(*precision.format);
    each_run(i, begin, end, [&](size_t group, int64_t at, int64_t count) {
      rounded.resize(static_cast<size_t>(count));
      const BlockScale unscaled{.scale = 1,
                                .inverse = scales_[group].inverse};  // the quotient is representable in the format
      quantize_dequantize({numbers + offset + (at - begin), 1, count, count}, {1, count}, {&unscaled, 1},
                          *precision.format, nullptr, rounded.data());
      for (const float number : rounded) *out++ = static_cast<std::byte>(code_of_rounded<OneLane>(grid, number));
    });
  });
}

at::Tensor ShardCodec::unpack(const at::Tensor& bytes) const {
  at::Tensor whole = at::empty({elements_}, bytes.options().dtype(type_));
  const MemoryScope memory(MemoryCategory::kBuffers);
  const CostScope cost("dequantize", 0, static_cast<double>(bytes.nbytes() + whole.nbytes()), DType::kFloat32);
  if (const DeviceRounding* device = rounding_of(bytes)) {
    unpack_by(*device, bytes, whole);
  } else if (!bytes.is_meta()) {
    read(bytes, whole);
  }
  return whole;
}

void ShardCodec::read(const at::Tensor& here, const at::Tensor& whole) const {
  const std::byte* in = begin_of(here);
  auto* out = static_cast<std::byte*>(whole.mutable_data_ptr());
  const auto item = static_cast<size_t>(whole.itemsize());
  for (int member = 0; member < group_.size(); ++member) {
    each_piece(member, [&](size_t i, int64_t begin, int64_t end, int64_t) {
      const CodedParameter& p = parameters_[i];
      if (!p.precision.quantized()) {
        const size_t size = static_cast<size_t>(end - begin) * item;
        std::copy_n(in, size, out + static_cast<size_t>(p.offset + begin) * item);
        in += size;
        return;
      }
      const std::array<float, 256> values = code_values(*p.precision.format);
      at::Tensor numbers = at::empty({end - begin}, at::kFloat);
      float* number = numbers.mutable_data_ptr<float>();
      each_run(i, begin, end, [&](size_t group, int64_t, int64_t count) {
        const float scale = scales_[group].scale;
        for (int64_t k = 0; k < count; ++k) *number++ = values[std::to_integer<size_t>(*in++)] * scale;
      });
      whole.narrow(0, p.offset + begin, end - begin).copy_(numbers);
    });
  }
}

at::Tensor ShardCodec::of_parameter(size_t parameter, const at::Tensor& per_group) const {
  return per_group.narrow(0, static_cast<int64_t>(first_group_[parameter]), group_count(parameters_[parameter]));
}

void ShardCodec::agree_on(const DeviceRounding& device, const at::Tensor& shard) {
  const MemoryScope memory(MemoryCategory::kBuffers);
  at::Tensor amax;
  {
    const CostScope cost("amax", 0, static_cast<double>(shard.nbytes()), DType::kFloat32);
    amax = at::zeros({static_cast<int64_t>(groups_)}, shard.options().dtype(at::kFloat));
    each_piece(group_.rank(), [&](size_t i, int64_t begin, int64_t end, int64_t offset) {
      if (parameters_[i].precision.quantized())
        DeviceCodes(parameters_[i], device)
            .find_amax(shard.narrow(0, offset, end - begin), begin, of_parameter(i, amax));
    });
  }
  if (group_.size() > 1) amax = group_.all_reduce(amax, ReduceOp::kMax);
  const NoCostScope free;
  device_scales_ = at::empty_like(amax);
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].precision.quantized())
      DeviceCodes(parameters_[i], device).make_scales(of_parameter(i, amax), of_parameter(i, device_scales_));
}

at::Tensor ShardCodec::packed_by(const DeviceRounding& device, const at::Tensor& shard) const {
  std::vector<at::Tensor> pieces;
  each_piece(group_.rank(), [&](size_t i, int64_t begin, int64_t end, int64_t offset) {
    const at::Tensor own = shard.narrow(0, offset, end - begin);
    pieces.push_back(parameters_[i].precision.quantized()
                         ? DeviceCodes(parameters_[i], device).coded(own, begin, of_parameter(i, device_scales_))
                         : own.view(at::kByte));
  });
  return pieces.empty() ? at::empty({0}, shard.options().dtype(at::kByte)) : at::cat(pieces);
}

void ShardCodec::unpack_by(const DeviceRounding& device, const at::Tensor& bytes, const at::Tensor& whole) const {
  std::vector<std::vector<at::Tensor>> pieces(parameters_.size());
  int64_t next = 0;
  for (int member = 0; member < group_.size(); ++member) {
    each_piece(member, [&](size_t i, int64_t begin, int64_t end, int64_t) {
      const int64_t count = (end - begin) * (parameters_[i].precision.quantized() ? 1 : whole.element_size());
      pieces[i].push_back(bytes.narrow(0, next, count));
      next += count;
    });
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const CodedParameter& p = parameters_[i];
    const at::Tensor own = at::cat(pieces[i]);  // new memory, aligned for any type
    whole.narrow(0, p.offset, p.elements)
        .copy_(p.precision.quantized() ? DeviceCodes(p, device).decoded(own, of_parameter(i, device_scales_))
                                       : own.view(type_));
  }
}

}  // namespace ranklab
