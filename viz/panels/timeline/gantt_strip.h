// A small timeline without controls: the compute row of every rank of a store, over a range of time that the caller
// chooses, so that several share one scale. Thread rule: the thread of the ImGui context.
#pragma once
#include <imgui.h>

#include "viz/model/tables/bubbles.h"
#include "viz/panels/timeline/draw_rows.h"

namespace ranklab::viz {

class GanttStrip {
 public:
  // Uses the remaining width, and `row_height` for each rank. RETURNS: its height.
  float draw(const TraceStore& store, const BubbleReport& bubbles, TimeRange scale, float row_height);
  // For hit tests at the mouse position, after draw().
  const TimelineLayout& layout() const { return layout_; }

 private:
  TimelineLayout layout_;
  RowPainter painter_;
};

}  // namespace ranklab::viz
