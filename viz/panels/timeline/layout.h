// The positions of the timeline's parts in this frame: columns (labels, time, totals), one box per row, and the mapping
// between time and pixels. Cost: O(rows). Thread rule: plain data.
#pragma once
#include <imgui.h>

#include <vector>

#include "viz/panels/parts/view_state.h"

namespace ranklab::viz {

class Workspace;

struct RowBox {
  size_t rank = 0;
  size_t row = 0;
  float top = 0, bottom = 0;  // on the screen
  bool main = false;          // the rank's compute row, or its first row: has label, bubbles, critical path, totals
  size_t tracks = 1;          // number of the row's tracks that are shown
  bool leads = false;         // the first track is twice as high: actions above their modules

  struct Part {
    float top, bottom;
  };
  Part part(size_t depth) const;  // where the track at this depth is
  size_t depth_at(float y) const;
};

struct RankBox {
  size_t rank = 0;
  float top = 0, bottom = 0;
};

struct TimelineLayout {
  float left = 0, plot_left = 0, plot_right = 0, right = 0;
  float top = 0, bottom = 0;  // of all rows together
  bool totals = false;        // there is space for the columns at the right
  Camera camera;
  std::vector<RowBox> rows;
  std::vector<RankBox> ranks;

  float width() const { return plot_right - plot_left; }
  float x_of(double time_ns) const {
    return plot_left + static_cast<float>((time_ns - camera.begin_ns) / camera.length_ns()) * width();
  }
  double time_of(float x) const {
    return camera.begin_ns + static_cast<double>((x - plot_left) / width()) * camera.length_ns();
  }
  const RowBox* row_at(float y) const;
  const RankBox* rank_at(float y) const;
  const RankBox* box_of(size_t rank) const;
};

// Fills `out` (its vectors keep their capacity). `origin`: top left of the first row. Rows are scaled by a factor of
// 0.62 to 2 to approach `wanted_height`.
void lay_out_columns(TimelineLayout& out, const Camera& camera, ImVec2 origin, float width);
void lay_out_rows(TimelineLayout& out, Workspace& workspace, float top, float wanted_height);

}  // namespace ranklab::viz
