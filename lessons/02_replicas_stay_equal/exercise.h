// Lesson 2: gradients that are averaged while backward is still running.
#pragma once
#include "../lesson_api.h"

namespace ranklab::lesson {

constexpr int kNotStarted = -1;

// The gradients of a few layers, contiguous in memory, so that they are sent as one message.
struct Bucket {
  std::span<double> data;    // backward writes the gradients here
  int missing;               // gradients that backward has not written yet; you count it down
  int ticket = kNotStarted;  // yours: the ticket of the all-reduce, once it is started
};

}  // namespace ranklab::lesson

// Backward has just written one more gradient of `bucket`, and continues with the next layer when this returns.
extern "C" void gradient_ready(ranklab::lesson::Comm& comm, ranklab::lesson::Bucket& bucket);
// Backward has finished. When this returns, every bucket must hold the average over all ranks.
extern "C" void finish(ranklab::lesson::Comm& comm, std::span<ranklab::lesson::Bucket> buckets);
