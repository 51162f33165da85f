// Lesson 3: where the ranks of a tensor-parallel MLP communicate.
#pragma once
#include <algorithm>
#include <cstddef>

#include "../lesson_api.h"

namespace ranklab::lesson {

// Outside the split part a rank holds all tokens (tensor parallelism) or its eighth of them (with sequence
// parallelism).
enum class Outside { kAllTokens, kMyTokens };

inline void copy(std::span<const double> from, std::span<double> to) {
  std::copy_n(from.begin(), to.size(), to.begin());
}

// This rank's eighth of `all`.
inline std::span<const double> my_part(const Comm& comm, std::span<const double> all) {
  const size_t each = all.size() / static_cast<size_t>(comm.size());
  return all.subspan(each * static_cast<size_t>(comm.rank()), each);
}

}  // namespace ranklab::lesson

// One function for each arrow of the picture in exercise.cpp. A span named `all` covers all tokens, `mine` what this
// rank holds outside the split part: all tokens with kAllTokens, an eighth with kMyTokens. Spans never overlap.
extern "C" {
void enter(ranklab::lesson::Comm& tp, ranklab::lesson::Outside outside, std::span<const double> mine,
           std::span<double> all);
void leave(ranklab::lesson::Comm& tp, ranklab::lesson::Outside outside, std::span<const double> all,
           std::span<double> mine);
void leave_backward(ranklab::lesson::Comm& tp, ranklab::lesson::Outside outside, std::span<const double> mine,
                    std::span<double> all);
void enter_backward(ranklab::lesson::Comm& tp, ranklab::lesson::Outside outside, std::span<const double> all,
                    std::span<double> mine);
void norm_gradient(ranklab::lesson::Comm& tp, ranklab::lesson::Outside outside, std::span<double> gradient);
}
