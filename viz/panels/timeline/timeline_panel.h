// The timeline: a row of blocks per rank and lane, bubbles with their causes, totals, and the selected event's
// dependencies. Thread rule: the window's thread.
#pragma once
#include <optional>
#include <vector>

#include "viz/model/legend.h"
#include "viz/panels/panel.h"
#include "viz/panels/parts/cached.h"
#include "viz/panels/parts/workspace.h"
#include "viz/panels/timeline/draw_rows.h"
#include "viz/panels/timeline/layout.h"

namespace ranklab::viz {

class TimelinePanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;
  bool scrolls_itself() const override { return true; }

  const TimelineLayout& layout() const { return layout_; }
  const RowPainter& painter() const { return painter_; }

 private:
  struct Drag {
    enum class Kind : uint8_t { kNone, kArea, kPan } kind = Kind::kNone;
    double from_ns = 0;
    float from_y = 0;
    bool moved = false;
  };

  void toolbar(Workspace& workspace);
  void rows(Workspace& workspace, float height);
  void overlays(Workspace& workspace, ImDrawList& draw);
  void arrows(Workspace& workspace, ImDrawList& draw);
  void input(Workspace& workspace, bool hovered);
  void drag(Workspace& workspace);
  void click(Workspace& workspace, ImVec2 point);

  TimelineLayout layout_;
  RowPainter painter_;
  Drag drag_;
  Cached<ContentKey, std::vector<LegendEntry>> legend_;
  float legend_height_ = 0;
  Cached<ContentKey, bool> both_clocks_;
};

// Draw the parts around the rows.
void draw_labels(ImDrawList& draw, const TimelineLayout& layout, const TraceStore& store);
void draw_ruler(ImDrawList& draw, const TimelineLayout& layout, const Workspace& workspace, float top, float height,
                float bottom);
void draw_rank_totals(ImDrawList& draw, const TimelineLayout& layout, const BubbleReport& bubbles);
void draw_totals_heading(ImDrawList& draw, const TimelineLayout& layout, float top, float height);
// Below the rows: means and length, and what colours and textures mean.
void draw_means(Workspace& workspace, const TimelineLayout& layout);
void draw_legend(Workspace& workspace, const std::vector<LegendEntry>& legend);
void timeline_tooltip(Workspace& workspace, const TimelineLayout& layout, ImVec2 point);

}  // namespace ranklab::viz
