// Lesson 1: an all-reduce built from messages.
#pragma once
#include <cstddef>

#include "../lesson_api.h"

namespace ranklab::lesson {

// The data cut into `count` parts as equal as possible. `index` wraps around: chunk -1 is the last one.
inline std::span<double> chunk(std::span<double> data, int index, int count) {
  const auto n = static_cast<size_t>(count);
  const auto i = static_cast<size_t>((index % count + count) % count);
  const size_t begin = data.size() * i / n, end = data.size() * (i + 1) / n;
  return data.subspan(begin, end - begin);
}

}  // namespace ranklab::lesson

// Warm-up. Every rank calls this with its own number and returns the number of the previous rank; rank 0 returns that
// of the last rank.
extern "C" double from_previous(ranklab::lesson::Comm& comm, double mine);
// Every rank calls this with its own data; afterwards every rank holds the element-wise sum.
extern "C" void ring_all_reduce(ranklab::lesson::Comm& comm, std::span<double> data);
