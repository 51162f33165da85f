// What to draw of a row at a zoom level: slices wider than a pixel individually, and sequences of narrower ones as one
// block with their count and dominant kind. The caller's buffer is reused, so a frame allocates nothing once the buffer
// has grown. Cost: O(pixels x log n) however many events the row has. Thread rule: pure.
#pragma once
#include <cstdint>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct LodBlock {
  float x0 = 0;  // pixels from the left edge of the window, clipped to it
  float x1 = 0;
  uint32_t event = 0;             // index into RankTrace::events: the slice, or the first slice of a merged block
  uint32_t count = 1;             // number of slices in the block
  Paint paint = Paint::kCompute;  // the paint of the largest part
  uint8_t depth = 0;              // index of the track
  bool merged() const { return count > 1; }
};

// Appends the blocks of the first `tracks` tracks of `row`, by depth and then from left to right. A slice of
// `least_pixels` or more is drawn separately.
void level_of_detail(const Row& row, TimeRange window, float width_pixels, std::vector<LodBlock>& out,
                     float least_pixels = 1.0F, size_t tracks = SIZE_MAX);

}  // namespace ranklab::viz
