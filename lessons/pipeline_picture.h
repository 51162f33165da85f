// A schedule drawn to scale: a row per rank, a block per action, dots where the rank is idle, and at the end of the row
// the largest number of microbatches the rank holds. Thread rule: pure.
#pragma once
#include <string>

#include "lessons/screen.h"
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

}  // namespace ranklab::lesson
