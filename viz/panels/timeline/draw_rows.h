// The timeline's rows: blocks with letters, hatched bubbles tinted by their cause, the critical path. Level of detail
// keeps a frame at O(pixels x log n), and the painter's buffers are reused: only the texts of long phases are
// allocated. Thread rule: the thread of the ImGui context.
#pragma once
#include <imgui.h>

#include <optional>
#include <string>
#include <vector>

#include "viz/model/critical_path.h"
#include "viz/model/level_of_detail.h"
#include "viz/model/tables/bubbles.h"
#include "viz/panels/timeline/growing.h"
#include "viz/panels/timeline/layout.h"

namespace ranklab::viz {

class RowPainter {
 public:
  // Draws all rows that are visible between y_from and y_to in one pass.
  void draw_stripes(ImDrawList& draw, const TimelineLayout& layout) const;
  void draw_bubbles(ImDrawList& draw, const TimelineLayout& layout, const BubbleReport& bubbles, float y_from,
                    float y_to) const;
  void draw_blocks(ImDrawList& draw, const TimelineLayout& layout, const TraceStore& store, float y_from, float y_to);
  // What ranks do between the blocks of their compute rows, in these rows: the optimizer, an outer update.
  void draw_phases(ImDrawList& draw, const TimelineLayout& layout, const TraceStore& store);
  // Thin marks over blocks that contain a stall.
  void draw_stalls(ImDrawList& draw, const TimelineLayout& layout, const BubbleReport& bubbles, float y_from,
                   float y_to) const;
  // The current activity of a live run's ranks.
  void draw_growing(ImDrawList& draw, const TimelineLayout& layout, const std::vector<GrowingBlock>& blocks) const;
  // At most one segment per pixel.
  void draw_critical_path(ImDrawList& draw, const TimelineLayout& layout, const CriticalPath& path);
  void outline(ImDrawList& draw, const TimelineLayout& layout, const TraceStore& store, EventRef event, ImU32 color,
               float thickness) const;

  // The number of rectangles in the last draw_blocks(), for the window's Metrics.
  size_t blocks() const { return drawn_; }

 private:
  void draw_block(ImDrawList& draw, const TraceStore& store, size_t rank, const LodBlock& block, ImVec2 from,
                  ImVec2 to) const;

  std::vector<LodBlock> lod_;
  std::vector<float> path_y_;  // by rank: y of the critical path on the screen; -1: not shown
  size_t drawn_ = 0;
};

// The event drawn at a screen position.
std::optional<EventRef> event_at(const TimelineLayout& layout, const TraceStore& store, ImVec2 point);
// The idle interval drawn at a screen position.
const IdleInterval* idle_at(const TimelineLayout& layout, const BubbleReport& bubbles, ImVec2 point);

}  // namespace ranklab::viz
