// Lesson 8, exercise: meet a limit of memory with as little extra work as possible.
//
// The stack has layers of different widths. For each you know what it keeps, what it would keep as mere input, what its
// backward takes on top, and what a second forward costs (exercise.h). peak_bytes() says what a choice needs at its
// fullest moment, extra_work() what it costs. Both are exact for your purpose: use them.
//
// What stands below computes every layer again. It needs little memory and does all forward work twice. Find the
// choice that stays within the limit and does the least work twice. There always is one.
//
// Check with:  ranklab lesson check 8
#include "exercise.h"

using namespace ranklab::lesson;

extern "C" void place([[maybe_unused]] std::span<const Layer> layers, [[maybe_unused]] double limit_bytes,
                      std::span<bool> again) {
  // ---- your turn: which of them? ----
  for (bool& one : again) one = true;
  // ---- end of your turn ----
}
