#include "core/parallel/data/shard_codec.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/nn/kernels/kernel_path.h"
#include "core/parallel/quantized/operand_rounding.h"
#include "core/precision/rounding_grid.h"
#include "core/precision/scaled_matrix.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

GroupShape groups_of(const CodedParameter& p, int64_t rows) {
  return group_shape(p.precision, Along::kColumns, rows, p.cols);
}

// Row counts of the parts whose groups are separate; with tensor or row scales there is one part.
std::vector<int64_t> parts_of(const CodedParameter& p) {
  const bool in_parts = p.precision.granularity == Granularity::kTile || p.precision.granularity == Granularity::kBlock;
  if (in_parts && !p.row_parts.empty()) return p.row_parts;
  return {p.elements / p.cols};
}

int64_t group_count(const CodedParameter& p) {
  int64_t count = 0;
  for (const int64_t rows : parts_of(p)) {
    const GroupShape groups = groups_of(p, rows);
    count += groups.grid_rows(rows) * groups.grid_cols(p.cols);
  }
  return count;
}

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
  const CodedParameter& p = parameters_[parameter];
  size_t first = first_group_[parameter];
  int64_t part_begin = 0;  // element
  for (const int64_t rows : parts_of(p)) {
    const GroupShape groups = groups_of(p, rows);
    const int64_t part_end = part_begin + rows * p.cols;
    for (int64_t at = std::max(begin, part_begin); at < std::min(end, part_end);) {
      const int64_t row = (at - part_begin) / p.cols, col = (at - part_begin) % p.cols;
      const int64_t stop = std::min((col / groups.width + 1) * groups.width, p.cols);
      const int64_t count = std::min(stop - col, std::min(end, part_end) - at);
      visit(first + static_cast<size_t>(row / groups.height * groups.grid_cols(p.cols) + col / groups.width), at,
            count);
      at += count;
    }
    first += static_cast<size_t>(groups.grid_rows(rows) * groups.grid_cols(p.cols));
    part_begin = part_end;
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
  std::ranges::fill(amax_, 0.0F);
  {
    const CostScope cost("amax", 0, static_cast<double>(shard.nbytes()), DType::kFloat32);
    const MemoryScope memory(MemoryCategory::kBuffers);
    const at::Tensor wide = shard.to(host_side(shard), at::kFloat);
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
  const at::Tensor here = shard.to(host_side(shard)), wide = here.to(at::kFloat);
  const at::Tensor packed =
      at::empty({rows_[static_cast<size_t>(group_.rank())]}, at::TensorOptions(at::kByte).device(here.device()));
  if (!here.is_meta())
    write(here, wide.const_data_ptr<float>(), reinterpret_cast<std::byte*>(packed.mutable_data_ptr<uint8_t>()));
  return packed.to(shard.device());
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
  const at::Tensor whole = at::empty({elements_}, at::TensorOptions(type_).device(host_side(bytes)));
  const MemoryScope memory(MemoryCategory::kBuffers);
  const CostScope cost("dequantize", 0, static_cast<double>(bytes.nbytes() + whole.nbytes()), DType::kFloat32);
  const at::Tensor here = bytes.to(host_side(bytes));
  if (!here.is_meta()) read(here, whole);
  return whole.to(bytes.device());
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

}  // namespace ranklab
