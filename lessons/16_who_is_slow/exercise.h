// Lesson 16: one rank is slow, and seven look slow.
#pragma once
#include <span>

namespace ranklab::lesson {

// A rank's time in a step.
struct RankTime {
  int stage;        // of the pipeline that it works in: ranks of one stage have the same work
  double computes;  // microseconds
  double waits;     // for a peer that comes later to a collective or with a message
};

}  // namespace ranklab::lesson

extern "C" {
// Warm-up. The median of what the ranks of a stage compute: of an even number the lower of the two in the middle.
double usual_time(std::span<const ranklab::lesson::RankTime> ranks, int stage);
// The rank whose device is slow; -1: none is. Slow is who computes more than 1.3 times what is usual in its stage.
int slow_rank(std::span<const ranklab::lesson::RankTime> ranks);
}
