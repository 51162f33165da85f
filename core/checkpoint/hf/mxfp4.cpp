#include "core/checkpoint/hf/mxfp4.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "core/base/text.h"
#include "core/checkpoint/read_only_file.h"

namespace ranklab {
namespace {

constexpr const char *kBlocks = "_blocks", *kScales = "_scales";
constexpr int64_t kBlock = 32, kBlockBytes = kBlock / 2;
constexpr int kScaleBias = 127;
constexpr std::byte kNanScale{255};

bool is_blocks(const TensorInfo& tensor) { return tensor.name.ends_with(kBlocks) && tensor.type == TensorType::kU8; }

constexpr std::array<float, 16> kCodes = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0F, -0.5, -1, -1.5, -2, -3, -4, -6};

float factor_of(std::byte scale) {
  static const auto kFactors = [] {
    std::array<float, 256> factors{};
    for (int i = 0; i < 256; ++i) factors[static_cast<size_t>(i)] = std::ldexp(1.0F, i - kScaleBias);
    return factors;
  }();
  return kFactors[static_cast<size_t>(scale)];
}

// The lower half of the bits is zero, so the upper half is the exact value.
uint16_t as_bf16(float value) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16U); }

}  // namespace

bool is_hf_mxfp4(const HfJson& file, const std::string& path) {
  const auto found = file.find("quantization_config");
  if (found == file.end() || !found->is_object() || found->value("quant_method", HfJson()) != "mxfp4") return false;
  static const std::set<std::string> kKnown = {"quant_method", "modules_to_not_convert", "dequantize"};
  for (const auto& [key, value] : found->items()) {
    if (!kKnown.contains(key)) HfValue(value, "quantization_config." + key, path).refuse("no such key");
  }
  return true;
}

HfMxfp4::HfMxfp4(const TensorSource& stored) : stored_(stored) {
  for (const TensorInfo& tensor : stored_.tensors()) {
    if (is_blocks(tensor)) {
      add(tensor);
    } else if (!tensor.name.ends_with(kScales)) {
      tensors_.push_back(tensor);
    } else {
      const std::string stem = tensor.name.substr(0, tensor.name.size() - std::strlen(kScales));
      const TensorInfo* blocks = stored_.find(stem + kBlocks);
      if (blocks == nullptr || !is_blocks(*blocks))
        refuse_checkpoint_file(where(), "scales " + quote(printable(tensor.name)) + " belong to no MXFP4 blocks",
                               blocks == nullptr ? "no " + quote(printable(stem + kBlocks)) : blocks->describe(),
                               "U8 blocks");
    }
  }
  std::ranges::sort(tensors_, {}, &TensorInfo::name);
}

void HfMxfp4::add(const TensorInfo& blocks) {
  const std::string stem = blocks.name.substr(0, blocks.name.size() - std::strlen(kBlocks));
  const std::string what = "MXFP4 tensor " + quote(printable(blocks.name));
  if (blocks.shape.size() != 4 || blocks.shape[3] != kBlockBytes)
    refuse_checkpoint_file(where(), what + " has the wrong shape", blocks.describe(), "[experts, out, in / 32, 16]");
  const std::vector<int64_t> want(blocks.shape.begin(), blocks.shape.end() - 1);
  const TensorInfo* scales = stored_.find(stem + kScales);
  if (scales == nullptr || scales->shape != want || scales->type != TensorType::kU8)
    refuse_checkpoint_file(where(), what + " lacks its scales",
                           scales == nullptr ? "no " + quote(printable(stem + kScales)) : scales->describe(),
                           "U8 of shape " + shape_text(want));
  if (stored_.find(stem) != nullptr)
    refuse_checkpoint_file(where(), what + " also exists without quantization", stored_.tensor(stem).describe(),
                           "blocks and scales alone");
  constexpr int64_t kMost = int64_t{1} << 40;
  if (std::ranges::any_of(want, [](int64_t size) { return size < 1 || size > kMost; }))
    refuse_checkpoint_file(where(), what + " has the wrong shape", blocks.describe(), "sizes of 1 and more");
  ++quantized_;
  tensors_.push_back({stem, TensorType::kBF16, {want[0], want[2] * kBlock, want[1]}});
}

std::vector<std::byte> HfMxfp4::read(const std::string& name) const {
  if (stored_.find(name) != nullptr) return stored_.read(name);
  std::vector<std::byte> all;
  for (int64_t expert = 0; expert < tensor(name).shape[0]; ++expert) {
    const std::vector<std::byte> one = read_slice(name, expert);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

std::vector<std::byte> HfMxfp4::read_slice(const std::string& name, int64_t index) const {
  if (stored_.find(name) != nullptr) return stored_.read_slice(name, index);
  const TensorInfo& info = tensor(name);
  const int64_t in = info.shape[1], out = info.shape[2];
  const std::vector<std::byte> codes = stored_.read_slice(name + kBlocks, index),
                               scales = stored_.read_slice(name + kScales, index);
  std::vector<std::byte> values(static_cast<size_t>(in * out) * sizeof(uint16_t));
  const std::byte *code = codes.data(), *scale = scales.data();  // for [out, in]
  for (int64_t row = 0; row < out; ++row) {
    std::byte* value = values.data() + row * static_cast<int64_t>(sizeof(uint16_t));
    const auto put = [&](uint8_t half) {
      const float number = kCodes[half] * factor_of(*scale);
      if (*scale == kNanScale || !std::isfinite(number)) refuse_scale(name, index, *scale);
      const uint16_t bits = as_bf16(number);
      std::memcpy(value, &bits, sizeof bits);
      value += out * static_cast<int64_t>(sizeof bits);
    };
    for (int64_t block = 0; block < in / kBlock; ++block, ++scale) {
      for (int64_t i = 0; i < kBlockBytes; ++i, ++code) {
        put(static_cast<uint8_t>(*code) & 15U);
        put(static_cast<uint8_t>(*code) >> 4U);
      }
    }
  }
  return values;
}

void HfMxfp4::refuse_scale(const std::string& name, int64_t expert, std::byte scale) const {
  refuse_checkpoint_file(where(), "a NaN or an infinity in MXFP4 tensor " + quote(printable(name + kScales)),
                         strprintf("scale %d of expert %lld", static_cast<int>(scale), static_cast<long long>(expert)),
                         "scales below 255, whose products bf16 holds");
}

}  // namespace ranklab
