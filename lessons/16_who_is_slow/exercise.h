// Lesson 16: one rank is slow, and seven look slow.
#pragma once
#include <span>

namespace ranklab::lesson {

// A rank's time in a step.
struct RankTime {
  int stage;        // its pipeline stage: ranks of one stage have the same work
  double computes;  // microseconds
  double waits;     // for peers that arrive later at a collective or with a message
};

}  // namespace ranklab::lesson

extern "C" {
// Warm-up. The median compute time of the ranks of a stage: for an even number, the lower of the two in the middle.
double usual_time(std::span<const ranklab::lesson::RankTime> ranks, int stage);
// The rank whose device is slow; -1: none is. A rank is slow if it computes more than 1.3 times its stage's median.
int slow_rank(std::span<const ranklab::lesson::RankTime> ranks);
}
