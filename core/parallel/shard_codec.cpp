#include "core/parallel/shard_codec.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/precision/scaled_matrix.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

constexpr int kCodes = 256;

GroupShape groups_of(const CodedParameter& p, int64_t rows) {
  return group_shape(p.precision, Along::kColumns, rows, p.cols);
}

// A tensor whose scale is that of all its parts has one group.
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

const std::byte* bytes_of(const at::Tensor& tensor) { return static_cast<const std::byte*>(tensor.const_data_ptr()); }

}  // namespace

ShardCodec::ShardCodec(std::vector<CodedParameter> parameters, int64_t elements, Communicator& group)
    : parameters_(std::move(parameters)), elements_(elements), group_(group) {
  for (const CodedParameter& p : parameters_) {
    first_group_.push_back(groups_);
    if (p.precision.quantized()) groups_ += static_cast<size_t>(group_count(p));
  }
  amax_.assign(groups_, 0.0F);
}

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

void ShardCodec::agree(const at::Tensor& shard) {
  if (rows_.empty()) {
    for (int member = 0; member < group_.size(); ++member) {
      int64_t bytes = 0;
      each_piece(member, [&](size_t i, int64_t begin, int64_t end, int64_t) {
        bytes += (end - begin) * (parameters_[i].precision.quantized() ? 1 : static_cast<int64_t>(shard.itemsize()));
      });
      rows_.push_back(bytes);
    }
  }
  const MemoryScope memory(MemoryCategory::kBuffers);
  std::ranges::fill(amax_, 0.0F);
  {
    const double read = static_cast<double>(shard.nbytes());
    const CostScope cost(0, read, DType::kFloat32);
    const at::Tensor wide = shard.to(at::kFloat);
    const float* numbers = wide.const_data_ptr<float>();
    each_piece(group_.rank(), [&](size_t i, int64_t begin, int64_t end, int64_t offset) {
      if (!parameters_[i].precision.quantized()) return;
      each_run(i, begin, end, [&](size_t group, int64_t at, int64_t count) {
        float most = 0;
        group_amax({numbers + offset + (at - begin), 1, count, count}, {1, count}, {&most, 1});
        if (std::isnan(most)) most = std::numeric_limits<float>::infinity();
        amax_[group] = std::max(amax_[group], most);
      });
    });
  }
  at::Tensor all = at::empty({static_cast<int64_t>(groups_)}, at::kFloat);
  std::ranges::copy(amax_, all.mutable_data_ptr<float>());
  all = group_.all_reduce(all, ReduceOp::kMax);
  std::copy_n(all.const_data_ptr<float>(), amax_.size(), amax_.begin());
}

at::Tensor ShardCodec::pack(const at::Tensor& shard) const {
  const CostScope cost(0, 2 * static_cast<double>(shard.nbytes()), DType::kFloat32);
  const MemoryScope memory(MemoryCategory::kBuffers);
  const at::Tensor wide = shard.to(at::kFloat);
  const float* numbers = wide.const_data_ptr<float>();
  const auto item = static_cast<size_t>(shard.itemsize());
  at::Tensor packed = at::empty({rows_[static_cast<size_t>(group_.rank())]}, at::kByte);
  auto* out = reinterpret_cast<std::byte*>(packed.mutable_data_ptr<uint8_t>());
  std::vector<std::byte> run;
  each_piece(group_.rank(), [&](size_t i, int64_t begin, int64_t end, int64_t offset) {
    TensorPrecision row = parameters_[i].precision;
    if (!row.quantized()) {
      const size_t bytes = static_cast<size_t>(end - begin) * item;
      out = std::copy_n(bytes_of(shard) + static_cast<size_t>(offset) * item, bytes, out);
      return;
    }
    row.granularity = Granularity::kRow;
    each_run(i, begin, end, [&](size_t group, int64_t at, int64_t count) {
      run.resize(static_cast<size_t>(packed_layout(row, Along::kColumns, 1, count).bytes()));
      pack_matrix({numbers + offset + (at - begin), 1, count, count}, row, Along::kColumns, {&amax_[group], 1}, 0,
                  nullptr, run);
      out = std::copy_n(run.begin(), count, out);
    });
  });
  return packed;
}

at::Tensor ShardCodec::unpack(const at::Tensor& bytes, at::ScalarType type) const {
  at::Tensor whole = at::empty({elements_}, at::TensorOptions(type));
  const MemoryScope memory(MemoryCategory::kBuffers);
  const CostScope cost(0, static_cast<double>(bytes.nbytes() + whole.nbytes()), DType::kFloat32);
  const std::byte* in = bytes_of(bytes);
  auto* out = static_cast<std::byte*>(whole.mutable_data_ptr());
  const auto item = static_cast<size_t>(whole.itemsize());
  std::array<float, kCodes> values{};
  for (int member = 0; member < group_.size(); ++member) {
    each_piece(member, [&](size_t i, int64_t begin, int64_t end, int64_t) {
      const CodedParameter& p = parameters_[i];
      if (!p.precision.quantized()) {
        const size_t size = static_cast<size_t>(end - begin) * item;
        std::copy_n(in, size, out + static_cast<size_t>(p.offset + begin) * item);
        in += size;
        return;
      }
      for (int code = 0; code < kCodes; ++code)
        values[static_cast<size_t>(code)] = static_cast<float>(decode(*p.precision.format, static_cast<uint8_t>(code)));
      at::Tensor numbers = at::empty({end - begin}, at::kFloat);
      float* number = numbers.mutable_data_ptr<float>();
      each_run(i, begin, end, [&](size_t group, int64_t, int64_t count) {
        const float scale = block_scale(p.precision, amax_[group], 0).scale;
        for (int64_t k = 0; k < count; ++k) *number++ = values[std::to_integer<size_t>(*in++)] * scale;
      });
      whole.narrow(0, p.offset + begin, end - begin).copy_(numbers);
    });
  }
  return whole;
}

}  // namespace ranklab
