#include "core/nn/device_random.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/base/numbers/philox.h"
#include "core/base/numbers/philox_rounds.h"
#include "core/sim/aten.h"

namespace ranklab {
namespace {

// 32-bit words are kept in int64 tensors, whose products wrap modulo 2^64 like unsigned ones.
constexpr int64_t kWord = 0xffffffff;
constexpr int64_t kUniformBits = 24;
enum : int64_t { kDropoutKey, kFirstSample, kRoundingKey, kOffsetParts };
constexpr int64_t kElementsAtOnce = int64_t{1} << 22;  // each takes two bytes in every intermediate operator

int64_t as_signed(uint64_t x) { return static_cast<int64_t>(x); }

at::Tensor low_word(const at::Tensor& x) { return x.bitwise_and(kWord); }
// An arithmetic shift copies the sign into the upper bits, which are masked away.
at::Tensor high_word(const at::Tensor& x) { return x.__rshift__(32).bitwise_and_(kWord); }

// x ^ (x >> count), with a shift that does not copy the sign.
at::Tensor xor_shifted(const at::Tensor& x, int64_t count) {
  return x.bitwise_xor(x.__rshift__(count).bitwise_and_(as_signed(~uint64_t{0} >> count)));
}

// RandomStream's mixing function.
at::Tensor mixed(at::Tensor x) {
  x = xor_shifted(x, 30).mul_(as_signed(kMixMultiplier1));
  x = xor_shifted(x, 27).mul_(as_signed(kMixMultiplier2));
  return xor_shifted(x, 31);
}

// The four words of each block of the stream: ten rounds of Philox4x32.
std::array<at::Tensor, 4> philox(const at::Tensor& block, const at::Tensor& stream, uint64_t key) {
  std::array<at::Tensor, 4> c = {low_word(block), high_word(block), low_word(stream), high_word(stream)};
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const at::Tensor p0 = c[0].mul(int64_t{kPhiloxMultiplier0}), p1 = c[2].mul(int64_t{kPhiloxMultiplier2});
    c = {high_word(p1).bitwise_xor(c[1]).bitwise_xor_(int64_t{k0}), low_word(p1),
         high_word(p0).bitwise_xor(c[3]).bitwise_xor_(int64_t{k1}), low_word(p0)};
    k0 += kPhiloxKeyStep0;
    k1 += kPhiloxKeyStep1;
  }
  return c;
}

}  // namespace

at::Tensor random_offset(uint64_t step, int64_t first_sample, at::Device device) {
  // Filled by kernels, because a copy from host memory would make the host wait for the device.
  at::Tensor offset = at::empty({kOffsetParts}, at::TensorOptions(at::kLong).device(device));
  const auto fill_key = [&](int64_t part, RandomPurpose purpose) {
    offset.select(0, part).fill_(as_signed(RandomStream::step_key(purpose, step)));
  };
  fill_key(kDropoutKey, RandomPurpose::kDropout);
  offset.select(0, kFirstSample).fill_(first_sample);
  fill_key(kRoundingKey, RandomPurpose::kStochasticRounding);
  return offset;
}

at::Tensor first_sample_of(const at::Tensor& offset) { return offset.select(0, kFirstSample); }
at::Tensor rounding_key_of(const at::Tensor& offset) { return offset.select(0, kRoundingKey); }

at::Tensor from_runs(std::span<const int64_t> numbers, const at::TensorOptions& options) {
  std::vector<at::Tensor> runs;
  for (size_t begin = 0, end = 0; begin < numbers.size(); begin = end) {
    const int64_t step = begin + 1 < numbers.size() ? numbers[begin + 1] - numbers[begin] : 0;
    end = begin + 1;
    while (step != 0 && end < numbers.size() && numbers[end] - numbers[end - 1] == step) ++end;
    const auto count = static_cast<int64_t>(end - begin);
    runs.push_back(at::arange(count, options).mul(step).add(numbers[begin]));
  }
  return runs.empty() ? at::empty({0}, options) : at::cat(runs);
}

at::Tensor device_positions(const std::vector<int64_t>* positions, int64_t first, int64_t count,
                            const at::TensorOptions& options) {
  if (positions == nullptr) return at::arange(first, first + count, options);
  return from_runs(std::span(*positions).subspan(static_cast<size_t>(first), static_cast<size_t>(count)), options);
}

DeviceRandom::DeviceRandom(uint64_t seed, std::string_view name, const at::Tensor& offset)
    : key_(RandomStream::seed_key(seed)),
      stream_(mixed(offset.select(0, kDropoutKey).bitwise_xor(as_signed(RandomStream::name_key(name))))) {}

at::Tensor DeviceRandom::bits(const at::Tensor& first, int64_t width, bool aligned) const {
  const auto options = first.options();
  if (aligned) {
    const at::Tensor block = first.__rshift__(2).unsqueeze(-1) + at::arange(width / 4, options);
    const auto words = philox(block, stream_, key_);
    return at::stack({words[0], words[1], words[2], words[3]}, -1).flatten(-2);
  }
  const at::Tensor element = first.unsqueeze(-1) + at::arange(width, options), word = element.bitwise_and(3);
  const auto words = philox(element.__rshift__(2), stream_, key_);
  return at::where(word.lt(2), at::where(word.eq(0), words[0], words[1]), at::where(word.eq(2), words[2], words[3]));
}

at::Tensor DeviceRandom::dropout_mask(const at::Tensor& first, int64_t width, bool aligned, double p,
                                      const at::Tensor& like) const {
  // The uniform numbers are multiples of 2^-24, so it is enough to compare integers.
  const auto dropped = static_cast<int64_t>(std::ceil(std::ldexp(p, kUniformBits)));
  std::vector<int64_t> sizes = first.sizes().vec();
  sizes.push_back(width);
  const at::Tensor mask = at::empty(sizes, like.options()), kept = mask.view({-1, width}), rows = first.reshape({-1});
  const int64_t together = std::max<int64_t>(1, kElementsAtOnce / width);
  for (int64_t row = 0; row < rows.size(0); row += together) {
    const int64_t count = std::min(together, rows.size(0) - row);
    const at::Tensor words = bits(rows.narrow(0, row, count), width, aligned);
    kept.narrow(0, row, count).copy_(words.__rshift__(32 - kUniformBits).ge(dropped));
  }
  return mask.mul_(static_cast<double>(static_cast<float>(1.0 / (1.0 - p))));
}

}  // namespace ranklab
