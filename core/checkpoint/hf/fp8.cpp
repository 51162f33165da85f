#include "core/checkpoint/hf/fp8.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>

#include "core/base/text.h"
#include "core/checkpoint/element_convert.h"
#include "core/checkpoint/read_only_file.h"

namespace ranklab {
namespace {

constexpr const char* kScale = "_scale_inv";
constexpr double kLargestCode = 448;

int64_t blocks_of(int64_t size, int64_t block) { return size / block + (size % block != 0 ? 1 : 0); }

const std::array<float, 256>& values_of_codes() {
  static const auto kValues = [] {
    std::array<float, 256> values{};
    for (size_t i = 0; i < values.size(); ++i) {
      const auto byte = static_cast<std::byte>(i);
      values[i] = static_cast<float>(element_value(TensorType::kF8E4M3, &byte));
    }
    return values;
  }();
  return kValues;
}

HfValue member(const HfJson& object, const std::string& key, const std::string& path) {
  const auto found = object.find(key);
  return {found == object.end() ? HfJson() : *found, "quantization_config." + key, path};
}

void require(const HfValue& value, const char* text, bool may_lack) {
  if (value.is_null() && may_lack) return;
  if (value.json() != text) value.refuse(text);
}

}  // namespace

std::optional<HfFp8> read_hf_fp8(const HfJson& file, const std::string& path) {
  const auto found = file.find("quantization_config");
  if (found == file.end() || found->is_null()) return std::nullopt;
  if (!found->is_object()) HfValue(*found, "quantization_config", path).refuse_damaged("an object");
  require(member(*found, "quant_method", path), "fp8", false);
  require(member(*found, "fmt", path), "e4m3", true);
  require(member(*found, "activation_scheme", path), "dynamic", true);
  require(member(*found, "expert_dtype", path), "fp8", true);
  const HfValue blocks = member(*found, "weight_block_size", path);
  constexpr int64_t kMost = 1 << 20;
  const auto is_size = [](const HfJson& size) { return size.is_number_integer() && size >= 1 && size <= kMost; };
  if (!blocks.json().is_array() || blocks.json().size() != 2 || !is_size(blocks.json()[0]) ||
      !is_size(blocks.json()[1]))
    blocks.refuse("[128, 128]: rows and columns of a block");
  // The other keys describe what is quantized and how scales were computed, which can be seen from the tensors
  // themselves.
  static const std::set<std::string> kKnown = {
      "quant_method",           "fmt",       "activation_scheme", "weight_block_size",  "expert_dtype",
      "modules_to_not_convert", "scale_fmt", "dequantize",        "modules_to_convert", "ignored_layers"};
  for (const auto& [key, value] : found->items()) {
    if (!kKnown.contains(key)) member(*found, key, path).refuse("no such key");
  }
  return HfFp8{blocks.json()[0].get<int64_t>(), blocks.json()[1].get<int64_t>()};
}

HfDequantized::HfDequantized(const TensorSource& stored, const HfFp8& fp8) : stored_(stored), fp8_(fp8) {
  for (const TensorInfo& tensor : stored_.tensors()) {
    if (tensor.type == TensorType::kF8E4M3) {
      add_matrix(tensor);
    } else if (!tensor.name.ends_with(kScale)) {
      tensors_.push_back(tensor);
    } else {
      const TensorInfo* matrix = stored_.find(tensor.name.substr(0, tensor.name.size() - std::strlen(kScale)));
      if (matrix == nullptr || matrix->type != TensorType::kF8E4M3)
        refuse_checkpoint_file(where(), "scales " + quote(printable(tensor.name)) + " belong to no FP8 matrix",
                               matrix == nullptr ? "none of this name" : matrix->describe(), "an F8_E4M3 matrix");
    }
  }
}

void HfDequantized::add_matrix(const TensorInfo& matrix) {
  const std::string what = "FP8 tensor " + quote(printable(matrix.name));
  if (matrix.shape.size() != 2)
    refuse_checkpoint_file(where(), what + " is not a matrix", matrix.describe(), "two dims, in blocks");
  const TensorInfo* scale = stored_.find(matrix.name + kScale);
  if (scale == nullptr)
    refuse_checkpoint_file(where(), what + " lacks its scales", "no " + quote(printable(matrix.name + kScale)),
                           "a scale for each block");
  const std::vector<int64_t> want = {blocks_of(matrix.shape[0], fp8_.block_rows),
                                     blocks_of(matrix.shape[1], fp8_.block_columns)};
  if (scale->shape != want || !is_float_target(scale->type))
    refuse_checkpoint_file(where(), "scales " + quote(printable(scale->name)) + " are not those of its blocks",
                           scale->describe(), "F32, BF16 or F16 of shape " + shape_text(want));
  ++matrices_;
  tensors_.push_back({matrix.name, TensorType::kF32, matrix.shape});
}

void HfDequantized::refuse_block(const TensorInfo& matrix, int64_t block, const std::string& what,
                                 const std::string& got, const std::string& want) const {
  const int64_t columns = blocks_of(matrix.shape[1], fp8_.block_columns);
  refuse_checkpoint_file(where(),
                         what + " in tensor " + quote(printable(matrix.name)) + ", block " +
                             shape_text(std::array{block / columns, block % columns}),
                         got, want);
}

std::vector<float> HfDequantized::scales_of(const TensorInfo& matrix) const {
  const TensorInfo& stored = stored_.tensor(matrix.name + kScale);
  const auto bytes = convert_elements(stored.type, stored_.read(stored.name), TensorType::kF32);
  std::vector<float> scales(bytes.size() / sizeof(float));
  std::memcpy(scales.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < scales.size(); ++i) {
    const bool legal = scales[i] > 0 && std::isfinite(static_cast<float>(kLargestCode * scales[i]));
    if (!legal)
      refuse_block(matrix, static_cast<int64_t>(i), "a scale out of range", strprintf("%g", scales[i]),
                   "a number above 0, whose product with 448 fp32 holds");
  }
  return scales;
}

std::vector<std::byte> HfDequantized::read(const std::string& name) const {
  const TensorInfo& stored = stored_.tensor(name);
  std::vector<std::byte> codes = stored_.read(name);
  if (stored.type != TensorType::kF8E4M3) return codes;
  const std::vector<float> scales = scales_of(stored);
  const int64_t columns = stored.shape[1], across = blocks_of(columns, fp8_.block_columns);
  const std::array<float, 256>& of_codes = values_of_codes();
  std::vector<std::byte> values(codes.size() * sizeof(float));
  const std::byte* code = codes.data();
  std::byte* to = values.data();
  for (int64_t row = 0; row < stored.shape[0]; ++row) {
    for (int64_t begin = 0; begin < columns; begin += fp8_.block_columns) {
      const int64_t block = row / fp8_.block_rows * across + begin / fp8_.block_columns;
      const float scale = scales[static_cast<size_t>(block)];
      const int64_t end = std::min(columns, begin + fp8_.block_columns);
      for (int64_t column = begin; column < end; ++column, ++code, to += sizeof scale) {
        const float value = of_codes[static_cast<size_t>(*code)] * scale;
        if (std::isnan(value))
          refuse_block(stored, block, "a NaN", strprintf("code 0x%02x", static_cast<unsigned>(*code)), "numbers");
        std::memcpy(to, &value, sizeof value);
      }
    }
  }
  return values;
}

}  // namespace ranklab
