// The input for drawing a stage script: the available space, the time, which rooms are shown; shared by draw_rooms.cpp,
// draw_flows.cpp and legend_line.cpp. Thread rule: the thread of the ImGui context.
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

// Draws node frames, below everything else, and the links that something uses at any time in the step.
void draw_nodes(ImDrawList& draw, const StageView& view);
void draw_links(ImDrawList& draw, const StageView& view);
void draw_room(ImDrawList& draw, const StageView& view, const StageRoom& room, bool shown, bool chosen);
// Everything about a room at the current time, on several lines.
void room_tooltip(const TraceStore& store, const StageView& view, const StageRoom& room);

// Draws what travels at a time: bands and particles of the flows, tokens of microbatches, and labels with number
// formats.
class FlowPainter {
 public:
  void draw(ImDrawList& draw, const StageView& view, const std::vector<bool>& shown);
  // The drawn flow under a point; nothing if there is none.
  std::optional<uint32_t> hit(const StageView& view, ImVec2 point) const;
  // The flows on their links at the time of the last draw().
  const std::vector<uint32_t>& flows() const { return flows_; }

 private:
  void ways(ImDrawList& draw, const StageView& view, const StageFlow& flow, const std::vector<bool>& shown);
  void label(ImDrawList& draw, const StageView& view, const StageFlow& flow);

  std::vector<uint32_t> flows_;
  std::vector<ImVec4> taken_;                         // rectangles of microbatches and labels that are already drawn
  std::vector<std::pair<uint32_t, DType>> labelled_;  // the kinds and types that already have a label
};

// The colour of a flow, adapted so that it is readable on the theme's background.
ImU32 flow_color(const StageFlowKind& kind);
// A small filled label: white or black words on a colour. RETURNS: its width.
float draw_badge(ImDrawList& draw, ImVec2 at, float font, const char* words, ImU32 fill);
float badge_width(float font, const char* words);

// Explains the colours in use; those of flows that are on their links now are brighter. Uses `lines` lines; what does
// not fit is shown on hovering a question mark.
void stage_legend(const StageView& view, const std::vector<uint32_t>& flows, int lines);

}  // namespace ranklab::viz
