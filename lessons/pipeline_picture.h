// A schedule drawn to scale: one row per rank, one block per action, dots where the rank is idle, and at the end of the
// row the largest number of microbatches that the rank holds. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "lessons/picture.h"
#include "lessons/written_order.h"

namespace ranklab::lesson {

struct PictureScale {
  int columns_per_unit = 1;
  // If true, a forward is shown as its microbatch index, a backward as B and the index; otherwise actions are letters
  // and the index, as far as they fit, in lower case on a rank's second stage.
  bool numbers = false;
};

//   rank 0  01234567·····················B0·B1·  8
void draw_pipeline(Screen& screen, const std::string& title, const TimedSchedule& run, PictureScale scale);

// Each rank's list, an entry after the other and not to scale: for orders that cannot be run.
//   rank 0  F0 F1 F2 BW0 ...
void draw_lists(Screen& screen, const std::string& title, const Schedule& schedule);

// Like run_order(), but draws the lists of an order that cannot be run.
TimedSchedule run_drawn(Screen& screen, OrderFunction* order, int ranks, int microbatches);

// The learner's order and the correct one, for one number of ranks and microbatches.
struct OrderPair {
  std::string where;  // "p = 8, m = 8"
  TimedSchedule yours, right;
  bool passed = false;
};
// Draws and records one pair: the first one that fits the screen and has not passed, else the first one that fits.
void draw_beside(Picture& screen, const std::vector<OrderPair>& pairs);

}  // namespace ranklab::lesson
