#include "core/base/batch_ramp.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>
#include <numeric>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

constexpr int64_t kMost = int64_t{1} << 40;
constexpr int64_t kMostSizes = 1 << 16;

// In 128 bits, because a product of samples and increments may exceed 64 bits.
int64_t scaled(int64_t value, int64_t by, int64_t over) {
  return static_cast<int64_t>(static_cast<__int128>(value) * by / over);
}
int64_t scaled_up(int64_t value, int64_t by, int64_t over) {
  return static_cast<int64_t>((static_cast<__int128>(value) * by + over - 1) / over);
}

[[noreturn]] void refuse(const std::string& what, const std::string& got, const std::string& want,
                         const std::string& fix) {
  throw Error(ErrorKind::kInvalidArgument,
              {.where = "--rampup-batch-size", .what = what, .got = got, .want = want, .fix = fix});
}

std::vector<int64_t> numbers_of(const std::string& text) {
  std::vector<int64_t> numbers;
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    int64_t number = 0;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{} || (next != end && *next != ' ' && *next != ',')) return {};
    numbers.push_back(number);
    at = next;
  }
  return numbers;
}

// "0:8 1024:16,4096:32"
std::vector<BatchRamp::Size> sizes_of(const std::string& text) {
  std::vector<BatchRamp::Size> sizes;
  const char *at = text.data(), *end = at + text.size();
  while (at != end) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    BatchRamp::Size one;
    const auto [colon, error] = std::from_chars(at, end, one.samples);
    if (error != std::errc{} || colon == end || *colon != ':') return {};
    const auto [next, size_error] = std::from_chars(colon + 1, end, one.size);
    if (size_error != std::errc{} || (next != end && *next != ' ' && *next != ',')) return {};
    sizes.push_back(one);
    at = next;
  }
  return sizes;
}

BatchRamp parse_sizes(const std::string& text, int64_t whole) {
  BatchRamp ramp{.whole = whole, .given = sizes_of(text)};
  int64_t before = -1;
  bool fits = !ramp.given.empty() && ramp.given.size() <= kMostSizes && ramp.given[0].samples == 0;
  for (const auto& [samples, size] : ramp.given) {
    fits = fits && samples > before && samples <= kMost && size >= 1 && size <= kMost;
    before = samples;
  }
  if (!fits)
    refuse("it is not a list of SAMPLES:SIZE", quote(text),
           "the first from 0 on, each from more samples than the one before it",
           "as in --rampup-batch-size \"0:8 1024:16\"");
  if (ramp.given.back().size != whole)
    refuse("its last size is not the global batch size", quote(text), "--global-batch-size " + std::to_string(whole),
           "make them equal");
  if (ramp.given.size() > 1) ramp.start = ramp.given[0].size;
  return ramp;
}

}  // namespace

BatchRamp BatchRamp::parse(const std::string& text, int64_t whole) {
  if (text.empty()) return {.whole = whole};
  if (text.find(':') != std::string::npos) return parse_sizes(text, whole);
  const std::vector<int64_t> numbers = numbers_of(text);
  const auto in_range = [](int64_t number, int64_t least) { return number >= least && number <= kMost; };
  if (numbers.size() != 3 || !in_range(numbers[0], 1) || !in_range(numbers[1], 1) || !in_range(numbers[2], 0))
    refuse("it is not START INCREMENT SAMPLES", quote(text), "three whole numbers, the first two above 0",
           "as in --rampup-batch-size \"8 8 1024\"");
  const BatchRamp ramp{.whole = whole, .start = numbers[0], .increment = numbers[1], .samples = numbers[2]};
  const std::string got =
      strprintf("START %lld, INCREMENT %lld, --global-batch-size %lld", static_cast<long long>(ramp.start),
                static_cast<long long>(ramp.increment), static_cast<long long>(whole));
  if (ramp.start >= whole)
    refuse("START is not below the global batch size", got, "below --global-batch-size", "start with a smaller batch");
  if ((whole - ramp.start) % ramp.increment != 0)
    refuse("INCREMENT does not divide the growth of the batch", got,
           "a divisor of " + std::to_string(whole - ramp.start), "pass such an INCREMENT, or another START");
  if ((whole - ramp.start) / ramp.increment > kMostSizes)
    refuse("the batch has too many sizes", got, "at most " + std::to_string(kMostSizes) + " increments",
           "pass a larger INCREMENT");
  return ramp;
}

int64_t BatchRamp::least() const {
  int64_t least = grows() ? std::min(start, whole) : whole;
  for (const Size& one : given) least = std::min(least, one.size);
  return least;
}

int64_t BatchRamp::divisor() const {
  if (!grows()) return whole;
  int64_t divisor = given.empty() ? std::gcd(std::gcd(start, increment), whole) : whole;
  for (const Size& one : given) divisor = std::gcd(divisor, one.size);
  return divisor;
}

int64_t BatchRamp::size_after(int64_t consumed) const {
  if (!given.empty()) {
    const auto next = std::ranges::upper_bound(given, consumed, {}, &Size::samples);
    return next == given.begin() ? given[0].size : std::prev(next)->size;
  }
  if (!grows() || consumed > samples) return whole;
  const int64_t increments = (whole - start) / increment;
  // Megatron-LM divides by samples / increments in floating point.
  const int64_t passed = samples == 0 ? increments : scaled(consumed, increments, samples);
  return start + std::min(passed, increments) * increment;
}

std::optional<int64_t> BatchRamp::end_of_size(int64_t consumed) const {
  if (!given.empty()) {
    const auto next = std::ranges::upper_bound(given, consumed, {}, &Size::samples);
    return next == given.end() ? std::nullopt : std::optional(next->samples);
  }
  const int64_t size = size_after(consumed);
  if (size == whole) return std::nullopt;
  const int64_t increments = (whole - start) / increment, passed = (size - start) / increment + 1;
  return std::min(scaled_up(passed, samples, increments), samples + 1);
}

template <typename Visit>
void BatchRamp::each(const Visit& visit) const {
  int64_t consumed = first_sample;
  while (true) {
    const int64_t size = size_after(consumed);
    const std::optional<int64_t> end = end_of_size(consumed);
    const int64_t steps = end ? (*end - consumed + size - 1) / size : std::numeric_limits<int64_t>::max();
    if (!visit(size, steps) || !end) return;
    consumed += steps * size;
  }
}

int64_t BatchRamp::samples_before(int64_t step) const {
  if (step < first_step) return scaled(first_sample, step, first_step);
  step -= first_step;
  int64_t samples_so_far = first_sample;
  each([&](int64_t size, int64_t steps) {
    const int64_t taken = std::min(step, steps);
    samples_so_far += taken * size;
    step -= taken;
    return step > 0;
  });
  return samples_so_far;
}

int64_t BatchRamp::steps_in(int64_t total) const {
  if (total < first_sample) return scaled(first_step, total, first_sample);
  int64_t all = first_step;
  total -= first_sample;
  each([&](int64_t size, int64_t steps) {
    const int64_t taken = std::min(total / size, steps);
    all += taken;
    total -= taken * size;
    return taken == steps;
  });
  return all;
}

std::vector<int64_t> BatchRamp::sizes() const {
  std::vector<int64_t> result;
  each([&](int64_t size, int64_t) {
    result.push_back(size);
    return true;
  });
  return result;
}

}  // namespace ranklab
