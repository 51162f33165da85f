// Draws everything around the rows of the timeline: labels, ruler, totals, legend, tooltip.
#include <algorithm>
#include <array>
#include <cmath>

#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"
#include "viz/panels/timeline/timeline_panel.h"

namespace ranklab::viz {
namespace {

constexpr const char* kTotalColumns[] = {"busy", "bubble", "exposed"};

float total_column_right(const TimelineLayout& layout, size_t column) {
  const float each = (layout.right - layout.plot_right - scaled(10)) / 3;
  return layout.plot_right + scaled(6) + each * static_cast<float>(column + 1);
}

void right_aligned(ImDrawList& draw, float right, float y, ImU32 color, std::string_view words, float size) {
  const char *begin = words.data(), *end = begin + words.size();
  const float width = ImGui::GetFont()->CalcTextSizeA(size, FLT_MAX, 0, begin, end).x;
  draw.AddText(ImGui::GetFont(), size, {std::floor(right - width), std::floor(y)}, color, begin, end);
}

// "r3", and its coordinates in smaller type.
void rank_label(ImDrawList& draw, float left, float middle, const std::string& label, float size) {
  const float y = std::floor(middle - size / 2);
  const size_t space = label.find(' ');
  const std::string_view number = std::string_view(label).substr(0, space);
  draw.AddText(ImGui::GetFont(), size, {left + scaled(8), y}, theme::kText, number.data(),
               number.data() + number.size());
  if (space == std::string::npos) return;
  const float used = text_width(number) * size / ImGui::GetFontSize();
  draw.AddText(ImGui::GetFont(), size * 0.86f, {left + scaled(14) + used, std::floor(y + size * 0.1f)}, theme::kDim,
               label.c_str() + space + 1);
}

std::array<std::string, 3> shares(const TimeSplit& time) {
  const auto [busy, bubble, of_ideal, exposed] = share_texts(time);
  return {busy, bubble, exposed};
}

// A font size at which labels do not overlap if ranks are close together.
float label_size(const TimelineLayout& layout) {
  float pitch = FLT_MAX;
  for (size_t i = 1; i < layout.ranks.size(); ++i)
    pitch = std::min(pitch, layout.ranks[i].top - layout.ranks[i - 1].top);
  return std::clamp(pitch, ImGui::GetFontSize() * 0.6f, ImGui::GetFontSize());
}

}  // namespace

void draw_labels(ImDrawList& draw, const TimelineLayout& layout, const TraceStore& store) {
  const float small = std::max(ImGui::GetFontSize() * 0.72f, 8.f);
  const float size = label_size(layout);
  RoomForLabels room(size);
  draw.AddLine({layout.plot_left - 1, layout.top}, {layout.plot_left - 1, layout.bottom}, theme::kLine);
  for (const RowBox& box : layout.rows) {
    const RankRows& rank = store.rank(box.rank);
    const float height = box.bottom - box.top;
    const float middle = (box.top + box.bottom) / 2;
    if (box.main) {
      if (room.take(middle)) rank_label(draw, layout.left, middle, rank.label, size);
    } else if (height >= small * 0.8f) {
      right_aligned(draw, layout.plot_left - scaled(6), middle - small / 2, theme::kFaint, rank.rows[box.row].label,
                    small);
    }
  }
  for (const RankBox& box : layout.ranks)
    if (store.rank(box.rank).rows.empty())
      rank_label(draw, layout.left, (box.top + box.bottom) / 2, store.rank(box.rank).label, size);
}

void draw_ruler(ImDrawList& draw, const TimelineLayout& layout, const Workspace& workspace, float top, float height,
                float bottom) {
  const TraceStore& store = workspace.store();
  draw.PushClipRect({layout.plot_left, top}, {layout.plot_right, bottom}, true);
  const int marks = std::max(2, static_cast<int>(layout.width() / scaled(110)));
  const int64_t step = std::max<int64_t>(1, axis_step_ns(static_cast<int64_t>(layout.camera.length_ns()), marks));
  const int64_t zero = store.range().begin_ns;
  auto mark = static_cast<int64_t>(
      std::floor((layout.camera.begin_ns - static_cast<double>(zero)) / static_cast<double>(step)));
  for (; static_cast<double>(mark * step + zero) < layout.camera.end_ns; ++mark) {
    const float x = std::floor(layout.x_of(static_cast<double>(mark * step + zero))) + 0.5f;
    draw.AddLine({x, top + height * 0.6f}, {x, bottom}, theme::kGrid);
    // A number that is cut off looks like another one: "1.80 ms" cut at its left is "0 ms".
    const std::string words = mark < 0 ? "" : tick_text(store, mark * step, step);
    const float left = x + scaled(4);
    if (left >= layout.plot_left && left + text_width(words) <= layout.plot_right)
      draw.AddText({left, top + scaled(3)}, theme::kDim, words.c_str());
  }
  for (const StepRange& range : store.steps()) {
    const float x = std::floor(layout.x_of(static_cast<double>(range.range.begin_ns))) + 0.5f;
    if (x < layout.plot_left - scaled(80) || x > layout.plot_right || store.steps().size() < 2) continue;
    draw.AddLine({x, top}, {x, bottom}, with_alpha(theme::kAccent, 70));
  }
  const float x = std::floor(layout.x_of(static_cast<double>(workspace.cursor.time_ns))) + 0.5f;
  draw.AddTriangleFilled({x - scaled(5), top}, {x + scaled(5), top}, {x, top + scaled(8)}, theme::kCursor);
  draw.PopClipRect();
  draw.AddLine({layout.left, top + height}, {layout.right, top + height}, theme::kLine);
}

void draw_totals_heading(ImDrawList& draw, const TimelineLayout& layout, float top, float height) {
  if (!layout.totals) return;
  const float size = ImGui::GetFontSize() * 0.86f;
  for (size_t i = 0; i < std::size(kTotalColumns); ++i)
    right_aligned(draw, total_column_right(layout, i), top + (height - size) / 2, theme::kDim, kTotalColumns[i], size);
}

void draw_rank_totals(ImDrawList& draw, const TimelineLayout& layout, const BubbleReport& bubbles) {
  const float size = label_size(layout) * 0.92f;
  RoomForLabels room(size);
  draw.AddLine({layout.plot_right, layout.top}, {layout.plot_right, layout.bottom}, theme::kLine);
  for (const RowBox& box : layout.rows) {
    if (!box.main || box.rank >= bubbles.ranks.size()) continue;
    const auto words = shares(bubbles.ranks[box.rank].time);
    const float y = (box.top + box.bottom - size) / 2;
    if (!room.take(y)) continue;
    for (size_t i = 0; i < words.size(); ++i)
      right_aligned(draw, total_column_right(layout, i), y, i == 0 ? theme::kText : theme::kDim, words[i], size);
  }
}

void draw_means(Workspace& workspace, const TimelineLayout& layout) {
  const TraceStore& store = workspace.store();
  const BubbleReport& bubbles = workspace.bubbles();
  const auto words = shares(bubbles.all);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (layout.totals) {
    right_aligned(draw, layout.plot_right - scaled(6), at.y, theme::kDim, "mean", ImGui::GetFontSize());
    for (size_t i = 0; i < words.size(); ++i)
      right_aligned(draw, total_column_right(layout, i), at.y, theme::kText, words[i], ImGui::GetFontSize() * 0.92f);
  }
  const char* what = workspace.scope == Scope::kTrace  ? "trace"
                     : workspace.scope == Scope::kStep ? "step"
                                                       : "selection";
  ImGui::Text("%s %s", what, format_time(store, bubbles.range.length_ns()).c_str());
  ImGui::SameLine(0, scaled(14));
  const std::string means = "busy " + words[0] + "   bubble " + words[1] + "   exposed " + words[2];
  dim_text(elided(means, ImGui::GetContentRegionAvail().x));
  tooltip(
      "Means over ranks, of the length.\nbusy: at work\nbubble: idle, (p-1)/(m+p-1) for 1F1B with p stages and m "
      "microbatches\nexposed: waiting for transfers that compute did not hide");
}

void draw_legend(Workspace& workspace, const std::vector<LegendEntry>& legend) {
  const BubbleReport& bubbles = workspace.bubbles();
  bool first = true;
  const auto entry = [&](auto what_colour, std::string_view label) {
    if (!first) same_line_if_fits(text_width(label) + scaled(34));
    first = false;
    swatch(what_colour, label);
  };
  for (const LegendEntry& one : legend) entry(im_color(one.colour), one.words);
  for (size_t c = 0; workspace.show_bubbles && c < kBubbleCauses; ++c)
    if (bubbles.all.by_cause_ns[c] > 0) entry(static_cast<BubbleCause>(c), name(static_cast<BubbleCause>(c)));
}

void timeline_tooltip(Workspace& workspace, const TimelineLayout& layout, ImVec2 point) {
  const TraceStore& store = workspace.store();
  if (const auto event = event_at(layout, store, point)) {
    const Event& what = store.event(*event);
    const Paint paint = paint_of(what, store.name(*event));
    ImGui::BeginTooltip();
    swatch(im_color(colour(paint)), store.text(*event));
    ImGui::SameLine();
    dim_text(name(paint));
    ImGui::Text("%s   %s", store.rank(event->rank_index).label.c_str(),
                format_time(store, store.end_ns(*event) - store.begin_ns(*event)).c_str());
    dim_text("from " + format_time(store, store.begin_ns(*event) - store.range().begin_ns));
    ImGui::EndTooltip();
    return;
  }
  if (!workspace.show_bubbles) return;
  if (const IdleInterval* idle = idle_at(layout, workspace.bubbles_of_trace(), point)) {
    ImGui::BeginTooltip();
    text("idle " + format_time(store, idle->range.length_ns()));
    dim_text(describe(*idle));
    ImGui::EndTooltip();
  }
}

}  // namespace ranklab::viz
