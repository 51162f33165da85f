#include "lessons/12_split_a_long_sequence/merge_cases.h"

#include <algorithm>
#include <cmath>

#include "core/base/numbers/philox.h"

namespace ranklab::lesson {
namespace {

constexpr size_t kQueries = 6, kKeysOfBlock = 5, kWidth = 3;

// Scores [queries x keys]; kNothing means that the query does not attend to the key. Values [keys x width].
struct Keys {
  size_t count = 0;
  std::vector<double> scores, values;
};

Keys random_keys(size_t count, double around) {
  const RandomStream stream(12, RandomPurpose::kTest, "merge");
  Keys keys{count, {}, {}};
  for (size_t i = 0; i < kQueries * count; ++i) keys.scores.push_back(around + 3 * stream.normal(i));
  for (size_t i = 0; i < count * kWidth; ++i) keys.values.push_back(stream.normal(kQueries * count + i));
  return keys;
}

// Hides keys so that no query attends to block 0, and query q attends to block b > 0 only if bit b - 1 of q is set; so
// query 0 attends to none.
void hide(Keys& keys) {
  for (size_t q = 0; q < kQueries; ++q) {
    for (size_t k = 0; k < keys.count; ++k) {
      const size_t block = k / kKeysOfBlock;
      if (block == 0 || (q >> (block - 1)) % 2 == 0) keys.scores[q * keys.count + k] = kNothing;
    }
  }
}

// The attention over keys [begin, end).
Partial softmax_over(const Keys& keys, size_t begin, size_t end) {
  Partial part{kWidth, std::vector<double>(kQueries * kWidth), std::vector<double>(kQueries, kNothing)};
  for (size_t q = 0; q < kQueries; ++q) {
    const std::span<const double> scores = std::span(keys.scores).subspan(q * keys.count, keys.count);
    double largest = kNothing, sum = 0;
    for (size_t k = begin; k < end; ++k) largest = std::max(largest, scores[k]);
    if (largest == kNothing) continue;
    for (size_t k = begin; k < end; ++k) sum += std::exp(scores[k] - largest);
    for (size_t k = begin; k < end; ++k) {
      for (size_t i = 0; i < kWidth; ++i)
        part.row(q)[i] += std::exp(scores[k] - largest) / sum * keys.values[k * kWidth + i];
    }
    part.log_sum_exp[q] = largest + std::log(sum);
  }
  return part;
}

double vector_error(const std::vector<double>& got, const std::vector<double>& want) {
  double error = got.size() == want.size() ? 0 : HUGE_VAL, largest = 1;
  for (size_t i = 0; i < want.size() && error < HUGE_VAL; ++i) {
    if (got[i] == want[i]) continue;  // both kNothing
    const double off = std::abs(got[i] - want[i]);
    error = off <= HUGE_VAL ? std::max(error, off) : HUGE_VAL;
    if (std::isfinite(want[i])) largest = std::max(largest, std::abs(want[i]));
  }
  return error / largest;
}

}  // namespace

double merge_error(decltype(::merge_partial)* merge, int blocks, double around, bool hidden) {
  const size_t count = static_cast<size_t>(blocks) * kKeysOfBlock;
  Keys keys = random_keys(count, around);
  if (hidden) hide(keys);
  const Partial want = softmax_over(keys, 0, count);
  Partial total = softmax_over(keys, 0, 0);
  for (size_t begin = 0; begin < count; begin += kKeysOfBlock)
    merge(total, softmax_over(keys, begin, begin + kKeysOfBlock));
  return std::max(vector_error(total.out, want.out), vector_error(total.log_sum_exp, want.log_sum_exp));
}

}  // namespace ranklab::lesson
