#include "cli/ckpt/ckpt_options.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

constexpr std::array<std::pair<const char*, TensorType>, 4> kTypes = {
    {{"fp32", TensorType::kF32}, {"fp64", TensorType::kF64}, {"bf16", TensorType::kBF16}, {"fp16", TensorType::kF16}}};
constexpr std::array<std::pair<const char*, double>, 8> kUnits = {
    {{"", 1}, {"B", 1}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}}};

}  // namespace

std::optional<TensorType> parse_tensor_type(const std::string& text) {
  if (text.empty()) return std::nullopt;
  for (const auto& [name, type] : kTypes) {
    if (text == name) return type;
  }
  throw Error(ErrorKind::kInvalidArgument, {.where = "ckpt",
                                            .what = "--dtype is not a type of weights",
                                            .got = quote(text),
                                            .want = "fp32, fp64, bf16 or fp16",
                                            .fix = "leave it out to keep the types that are there"});
}

std::string short_name(TensorType type) {
  for (const auto& [name, known] : kTypes) {
    if (known == type) return name;
  }
  return std::string(name(type));
}

uint64_t parse_bytes(const std::string& flag, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  for (const auto& [name, factor] : kUnits) {
    const double bytes = value * factor;
    if (error == std::errc() && unit == name && bytes >= 1 && bytes < 0x1p62) return static_cast<uint64_t>(bytes);
  }
  throw Error(ErrorKind::kInvalidArgument, {.where = "ckpt",
                                            .what = flag + " is not a size",
                                            .got = quote(text),
                                            .want = "a number with B, KB, MB, GB, KiB, MiB or GiB, as in 5GB",
                                            .fix = "leave it out for the default"});
}

}  // namespace ranklab
