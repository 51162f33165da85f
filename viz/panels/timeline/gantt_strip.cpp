#include "viz/panels/timeline/gantt_strip.h"

#include "core/base/text.h"
#include "viz/panels/parts/theme.h"

namespace ranklab::viz {

float GanttStrip::draw(const TraceStore& store, const BubbleReport& bubbles, TimeRange scale, float row_height) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x;
  layout_.left = at.x;
  layout_.plot_left = at.x + scaled(34);
  layout_.plot_right = layout_.right = at.x + width;
  layout_.camera.show(scale);
  layout_.rows.clear();
  layout_.ranks.clear();
  float y = at.y;
  for (size_t rank = 0; rank < store.ranks().size(); ++rank) {
    const auto& rows = store.rank(rank).rows;
    for (size_t row = 0; row < rows.size(); ++row)
      if (rows[row].label == "compute") layout_.rows.push_back({rank, row, y, y + row_height, true});
    y += row_height + 1;
  }
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled({layout_.plot_left, at.y}, {layout_.plot_right, y}, theme::kField);
  draw.PushClipRect({layout_.left, at.y}, {layout_.plot_right, y}, true);
  painter_.draw_phases(draw, layout_, store);
  painter_.draw_bubbles(draw, layout_, bubbles, at.y, y);  // also within phases, such as the gradients' reduction
  painter_.draw_blocks(draw, layout_, store, at.y, y);
  const float size = std::min(ImGui::GetFontSize() * 0.8f, row_height);
  const bool legible = size >= scaled(7);
  for (const RowBox& row : layout_.rows) {
    if (!legible) break;
    const std::string label = strprintf("r%d", store.rank(row.rank).global_rank);
    draw.AddText(ImGui::GetFont(), size, {layout_.left + scaled(4), (row.top + row.bottom - size) / 2}, theme::kDim,
                 label.c_str());
  }
  draw.PopClipRect();
  ImGui::Dummy({width, y - at.y});
  return y - at.y;
}

}  // namespace ranklab::viz
