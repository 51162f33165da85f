// A schedule drawn to scale: a row per rank, a block per action, dots where the rank is idle, and at the end of the row
// the largest number of microbatches the rank holds. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "lessons/picture.h"
#include "lessons/written_order.h"

namespace ranklab::lesson {

struct PictureScale {
  int columns_per_unit = 1;
  // A forward is shown by its microbatch index, a backward by B and the index; else by letters and index, as far as
  // they fit, in lower case on a rank's second stage.
  bool numbers = false;
};

//   rank 0  01234567·····················B0·B1·  8
void draw_pipeline(Screen& screen, const std::string& title, const TimedSchedule& run, PictureScale scale);

// Each rank's list, an entry after the other and not to scale: for orders that cannot be run.
//   rank 0  F0 F1 F2 BW0 ...
void draw_lists(Screen& screen, const std::string& title, const Schedule& schedule);

// As run_order(); draws the lists of an order that cannot be run.
TimedSchedule run_drawn(Screen& screen, OrderFunction* order, int ranks, int microbatches);

// A learner's order and the right one, for one number of ranks and microbatches.
struct OrderPair {
  std::string where;  // "p = 8, m = 8"
  TimedSchedule yours, right;
  bool passed = false;
};
// Draws and records one pair: the first that has not passed and fits the screen, else the first that fits.
void draw_beside(Picture& screen, const std::vector<OrderPair>& pairs);

}  // namespace ranklab::lesson
