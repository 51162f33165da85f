#include "core/parallel/data/device_codes.h"

#include <algorithm>

#include "core/parallel/quantized/device_operand.h"
#include "core/precision/scale_maker.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

at::Tensor as_kernels_read(const at::Tensor& numbers) {
  return numbers.scalar_type() == at::kBFloat16 ? numbers : numbers.to(at::kFloat);
}

}  // namespace

// Whole rows of groups of a part, of which a shard has the elements [skipped, skipped + count); zeros elsewhere.
struct DeviceCodes::Cover {
  at::Tensor numbers;
  DeviceMatrix matrix;
  int64_t first_group = 0;  // counted from the parameter's
  int64_t skipped = 0, count = 0;
};

DeviceCodes::DeviceCodes(const CodedParameter& parameter, const DeviceRounding& device)
    : parameter_(parameter), parts_(parts_of(parameter)), device_(device) {}

template <typename Visit>
void DeviceCodes::each_cover(const at::Tensor& shard, int64_t begin, const Visit& visit) const {
  for (const CodedPart& part : parts_) {
    const int64_t from = std::max(begin, part.begin), to = std::min(begin + shard.numel(), part.end());
    if (from >= to) continue;
    at::Tensor own = as_kernels_read(shard.narrow(0, from - begin, to - from));
    Cover cover;
    cover.matrix.bf16 = own.scalar_type() == at::kBFloat16;
    cover.count = to - from;
    if (part.group_count() == 1) {  // needs no more than the shard's own elements
      cover.matrix.rows = 1;
      cover.matrix.cols = cover.matrix.stride = cover.matrix.width = cover.count;
      cover.first_group = part.first_group;
    } else {
      const int64_t in_group_row = part.groups.height * part.cols, first_row = (from - part.begin) / in_group_row;
      const int64_t first = part.begin + first_row * in_group_row;
      const int64_t last =
          std::min(first + ((to - first) + in_group_row - 1) / in_group_row * in_group_row, part.end());
      if (first < from || to < last) {
        const at::Tensor whole = at::zeros({last - first}, own.options());
        whole.narrow(0, from - first, cover.count).copy_(own);
        own = whole;
      }
      cover.skipped = from - first;
      cover.first_group = part.first_group + first_row * part.grid_cols();
      cover.matrix.rows = (last - first) / part.cols;
      cover.matrix.cols = cover.matrix.stride = part.cols;
      cover.matrix.height = part.groups.height;
      cover.matrix.width = part.groups.width;
    }
    cover.numbers = own.contiguous();
    cover.matrix.x = cover.numbers.const_data_ptr();
    visit(cover);
  }
}

void DeviceCodes::find_amax(const at::Tensor& shard, int64_t begin, const at::Tensor& amax) const {
  each_cover(shard, begin, [&](const Cover& cover) {
    if (cover.matrix.groups() > 1) {
      device_.group_amax(cover.matrix, amax.mutable_data_ptr<float>() + cover.first_group);
      return;
    }
    // A group is the work of few threads, so a large one is taken in tiles.
    DeviceMatrix tiles = cover.matrix;
    tiles.height = 1;
    tiles.width = kScaledGroup;
    const at::Tensor most = at::empty({tiles.groups()}, amax.options());
    device_.group_amax(tiles, most.mutable_data_ptr<float>());
    amax.narrow(0, cover.first_group, 1).copy_(most.amax(0, /*keepdim=*/true));
  });
}

void DeviceCodes::make_scales(const at::Tensor& amax, const at::Tensor& scales) const {
  device_.make_scales(scale_maker(parameter_.precision, 0), amax.const_data_ptr<float>(), amax.numel(), nullptr,
                      scales.mutable_data_ptr<float>());
}

at::Tensor DeviceCodes::coded(const at::Tensor& shard, int64_t begin, const at::Tensor& scales) const {
  std::vector<at::Tensor> codes;
  each_cover(shard, begin, [&](const Cover& cover) {
    const at::Tensor all = at::empty({cover.matrix.rows * cover.matrix.cols}, shard.options().dtype(at::kByte));
    device_.round(cover.matrix, rounding_grid(*parameter_.precision.format),
                  scales.const_data_ptr<float>() + cover.first_group, {},
                  {.codes = all.mutable_data_ptr<uint8_t>(), .stride = cover.matrix.stride});
    codes.push_back(all.narrow(0, cover.skipped, cover.count));
  });
  return codes.size() == 1 ? codes[0] : at::cat(codes);
}

at::Tensor DeviceCodes::decoded(const at::Tensor& codes, const at::Tensor& scales) const {
  at::Tensor numbers = codes.view(code_type(*parameter_.precision.format)).to(at::kFloat);
  for (const CodedPart& part : parts_)
    numbers.narrow(0, part.begin, part.rows * part.cols)
        .view({part.rows, part.cols})
        .mul_(scales_for(scales.narrow(0, part.first_group, part.group_count()), part.groups, part.rows, part.cols));
  return numbers;
}

}  // namespace ranklab
