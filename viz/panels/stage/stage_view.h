// How a stage script is drawn at a time: the space it has, the time, which rooms are shown. What draw_rooms.cpp,
// draw_flows.cpp and legend_line.cpp share. Thread rule: the thread of the ImGui context.
#pragma once
#include <imgui.h>

#include <optional>
#include <utility>
#include <vector>

#include "viz/model/stage/script.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

struct StageView {
  const StageScript& script;
  int64_t time_ns = 0;
  ImVec2 from, size;  // of the picture, on the screen

  ImVec2 at(double x, double y) const {
    return {from.x + static_cast<float>(x) * size.x, from.y + static_cast<float>(y) * size.y};
  }
};

// Node frames, below everything else, and the ways that something takes at some time.
void draw_nodes(ImDrawList& draw, const StageView& view);
void draw_links(ImDrawList& draw, const StageView& view);
void draw_room(ImDrawList& draw, const StageView& view, const StageRoom& room, bool shown, bool chosen);
// Everything about a room at the time, on several lines.
void room_tooltip(const TraceStore& store, const StageView& view, const StageRoom& room);

// What travels at a time: bands and particles of the flows, tokens of microbatches, and labels of their number formats.
class FlowPainter {
 public:
  void draw(ImDrawList& draw, const StageView& view, const std::vector<bool>& shown);
  // The flow under a point, of those drawn; nothing: none.
  std::optional<uint32_t> hit(const StageView& view, ImVec2 point) const;
  // Flows on their links at the time of the last draw().
  const std::vector<uint32_t>& flows() const { return flows_; }

 private:
  void ways(ImDrawList& draw, const StageView& view, const StageFlow& flow, const std::vector<bool>& shown);
  void label(ImDrawList& draw, const StageView& view, const StageFlow& flow);

  std::vector<uint32_t> flows_;
  std::vector<ImVec4> taken_;                         // rectangles of microbatches and labels that are drawn
  std::vector<std::pair<uint32_t, DType>> labelled_;  // kinds that have a label, where each has one
};

// A colour of what travels, readable on the theme's background.
ImU32 flow_color(const StageFlowKind& kind);
// A small filled label: white or black words on a colour. Returns its width.
float draw_badge(ImDrawList& draw, ImVec2 at, float font, const char* words, ImU32 fill);
float badge_width(float font, const char* words);

// What the colours in use mean, those of flows that are on their links now brighter. In `lines` lines; what does not
// fit is behind a question mark.
void stage_legend(const StageView& view, const std::vector<uint32_t>& flows, int lines);

}  // namespace ranklab::viz
