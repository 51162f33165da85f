#include "viz/panels/timeline/draw_rows.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

struct PaintColors {
  ThemeKind of = theme_kind();
  std::array<ImU32, kPaints> fill, merged, text;
  PaintColors() {
    for (size_t i = 0; i < kPaints; ++i) {
      fill[i] = im_color(colour(static_cast<Paint>(i)));
      merged[i] = blend(fill[i], theme::kField, 0.25f);
      text[i] = im_color(text_colour(static_cast<Paint>(i)));
    }
    // A pair of actions is drawn in the colours of its halves.
    text[static_cast<size_t>(Paint::kPair)] = text[static_cast<size_t>(Paint::kForward)];
  }
};

const PaintColors& colors() {
  static PaintColors colors;
  if (colors.of != theme_kind()) colors = PaintColors();
  return colors;
}

// Calls draw(x0, x1, interval) for the visible intervals; if they are narrower than a pixel, for at most one per pixel.
template <typename Draw>
void each_idle(const TimelineLayout& layout, const std::vector<IdleInterval>& idle, Draw draw) {
  const auto ends_after = [](int64_t time, const IdleInterval& interval) { return time < interval.range.end_ns; };
  auto at = std::upper_bound(idle.begin(), idle.end(), static_cast<int64_t>(layout.camera.begin_ns), ends_after);
  while (at != idle.end() && static_cast<double>(at->range.begin_ns) < layout.camera.end_ns) {
    const float x0 = std::max(layout.x_of(static_cast<double>(at->range.begin_ns)), layout.plot_left);
    const float x1 = std::min(layout.x_of(static_cast<double>(at->range.end_ns)), layout.plot_right);
    if (x1 - x0 >= 1) {
      draw(x0, x1, *at);
      ++at;
      continue;
    }
    draw(x0, x0 + 1, *at);
    at = std::upper_bound(at + 1, idle.end(), static_cast<int64_t>(layout.time_of(x0 + 1)), ends_after);
  }
}

bool at_work_stall(BubbleCause cause) { return cause == BubbleCause::kExposed || cause == BubbleCause::kStraggler; }

// Draws the words at `share` of the font's size if they fit. RETURNS: false if they do not.
bool add_text(ImDrawList& draw, ImVec2 from, ImVec2 to, ImU32 color, std::string_view words, float share) {
  const char *begin = words.data(), *end = begin + words.size();
  const float size = std::floor(std::min(ImGui::GetFontSize() * share, (to.y - from.y) * 0.92f));
  if (words.empty() || size < ImGui::GetFontSize() * 0.55f) return false;
  const float width = ImGui::GetFont()->CalcTextSizeA(size, FLT_MAX, 0, begin, end).x;
  if (width > to.x - from.x - 2) return false;
  draw.AddText(ImGui::GetFont(), size,
               {std::floor((from.x + to.x - width) / 2), std::floor((from.y + to.y - size) / 2)}, color, begin, end);
  return true;
}

constexpr float kSmall = 0.74f, kPhaseWithTime = 150;

// A time about which the trace says nothing. It is not hatched, because hatching means that a rank is known to be idle.
void draw_unrecorded(ImDrawList& draw, const TimelineLayout& layout, const RowBox& row, TimeRange range) {
  if (range.empty()) return;
  const float x0 = std::max(layout.x_of(static_cast<double>(range.begin_ns)), layout.plot_left);
  const float x1 = std::min(layout.x_of(static_cast<double>(range.end_ns)), layout.plot_right);
  if (x1 - x0 < 1) return;
  draw.AddRectFilled({x0, row.top}, {x1, row.bottom}, with_alpha(theme::kLine, 90));
  add_text(draw, {x0, row.top}, {x1, row.bottom}, theme::kDim, "not recorded", kSmall);
}

}  // namespace

void RowPainter::draw_stripes(ImDrawList& draw, const TimelineLayout& layout) const {
  for (size_t i = 0; i < layout.ranks.size(); ++i) {
    const RankBox& box = layout.ranks[i];
    if (i % 2 == 1) draw.AddRectFilled({layout.left, box.top}, {layout.right, box.bottom}, theme::kStripe);
    draw.AddLine({layout.left, box.bottom}, {layout.right, box.bottom}, theme::kLine);
  }
}

void RowPainter::draw_bubbles(ImDrawList& draw, const TimelineLayout& layout, const BubbleReport& bubbles, float y_from,
                              float y_to) const {
  const float spacing = scaled(6);
  for (const RowBox& row : layout.rows) {
    if (!row.main || row.bottom < y_from || row.top > y_to || row.rank >= bubbles.ranks.size()) continue;
    draw_unrecorded(draw, layout, row, bubbles.ranks[row.rank].unrecorded);
    for (const TimeRange& lost : bubbles.ranks[row.rank].lost) draw_unrecorded(draw, layout, row, lost);
    each_idle(layout, bubbles.ranks[row.rank].idle, [&](float x0, float x1, const IdleInterval& idle) {
      fill_bubble(draw, {x0, row.top}, {x1, row.bottom}, idle.cause, spacing);
    });
  }
}

void RowPainter::draw_stalls(ImDrawList& draw, const TimelineLayout& layout, const BubbleReport& bubbles, float y_from,
                             float y_to) const {
  for (const RowBox& row : layout.rows) {
    if (!row.main || row.bottom < y_from || row.top > y_to || row.rank >= bubbles.ranks.size()) continue;
    const float thick = std::max(2.f, (row.bottom - row.top) * 0.16f);
    each_idle(layout, bubbles.ranks[row.rank].idle, [&](float x0, float x1, const IdleInterval& idle) {
      if (!at_work_stall(idle.cause)) return;
      draw.AddRectFilled({x0, row.bottom - thick}, {x1, row.bottom}, with_alpha(im_color(colour(idle.cause)), 215));
    });
  }
}

void RowPainter::draw_block(ImDrawList& draw, const TraceStore& store, size_t rank, const LodBlock& block, ImVec2 from,
                            ImVec2 to) const {
  const RankTrace& trace = store.trace(rank);
  const bool with_stage = store.rank(rank).several_stages;
  const size_t paint = static_cast<size_t>(block.paint);
  const float width = to.x - from.x;
  if (width > 3) to.x -= 1;  // keeps a gap between neighbours
  const float rounding = width > 8 && to.y - from.y > 13 ? scaled(2) : 0;
  if (block.merged()) {
    draw.AddRectFilled(from, to, colors().merged[paint]);
    return;
  }
  if (block.paint == Paint::kPair) {
    const float middle = (from.y + to.y) / 2;
    draw.AddRectFilled(from, {to.x, middle}, colors().fill[static_cast<size_t>(Paint::kForward)]);
    draw.AddRectFilled({from.x, middle}, to, colors().fill[static_cast<size_t>(Paint::kBackward)]);
    draw.AddRect(from, to, IM_COL32(0, 0, 0, 255), 0, scaled(1.5f));
  } else {
    draw.AddRectFilled(from, to, colors().fill[paint], rounding);
  }
  if (width < scaled(7)) return;
  const Event& event = trace.events[block.event];
  const std::string_view name = trace.names[event.name];
  const ImU32 color = colors().text[paint];
  if (letters(block.paint).empty()) {
    std::string own;
    if (event.kind == EventKind::kModule || event.kind == EventKind::kAttention) own = block_text(event, name, false);
    if (event.kind == EventKind::kPhase && width > scaled(kPhaseWithTime))
      own = std::string(name) + "  " +
            format_time(store, store.end_ns({rank, block.event}) - store.begin_ns({rank, block.event}));
    const std::string_view shown = own.empty() ? name : std::string_view(own);
    if (!add_text(draw, from, to, color, shown, 1)) add_text(draw, from, to, color, shown, kSmall);
    return;
  }
  const std::string words = block_text(event, name, with_stage);  // short: no allocation
  if (add_text(draw, from, to, color, words, 1) || add_text(draw, from, to, color, words, kSmall)) return;
  if (!add_text(draw, from, to, color, letters(block.paint), 1))
    add_text(draw, from, to, color, letters(block.paint), kSmall);
}

void RowPainter::draw_blocks(ImDrawList& draw, const TimelineLayout& layout, const TraceStore& store, float y_from,
                             float y_to) {
  drawn_ = 0;
  const TimeRange range = layout.camera.range();
  for (const RowBox& box : layout.rows) {
    if (box.bottom < y_from || box.top > y_to) continue;
    const RankRows& rank = store.rank(box.rank);
    const Row& row = rank.rows[box.row];
    lod_.clear();
    level_of_detail(row, range, layout.width(), lod_, 1, box.tracks);
    drawn_ += lod_.size();
    for (const LodBlock& block : lod_) {
      const RowBox::Part part = box.part(block.depth);
      draw_block(draw, store, box.rank, block, {layout.plot_left + block.x0, part.top},
                 {layout.plot_left + std::max(block.x1, block.x0 + 1), part.bottom});
    }
  }
}

void RowPainter::draw_phases(ImDrawList& draw, const TimelineLayout& layout, const TraceStore& store) {
  const auto encloses_blocks = [](std::string_view phase) { return phase == "step" || phase == "forward-backward"; };
  for (const RowBox& box : layout.rows) {
    for (const Row& row : store.rank(box.rank).rows) {
      if (row.label != "phase") continue;
      lod_.clear();
      level_of_detail(row, layout.camera.range(), layout.width(), lod_);
      for (const LodBlock& block : lod_) {
        const EventRef ref{box.rank, block.event};
        if (store.event(ref).kind != EventKind::kPhase || encloses_blocks(store.name(ref))) continue;
        draw.AddRectFilled({layout.plot_left + block.x0, box.top}, {layout.plot_left + block.x1, box.bottom},
                           im_color(colour(block.paint)));
      }
    }
  }
}

void RowPainter::draw_growing(ImDrawList& draw, const TimelineLayout& layout,
                              const std::vector<GrowingBlock>& blocks) const {
  for (const GrowingBlock& block : blocks) {
    const RankBox* box = layout.box_of(block.rank_index);
    if (box == nullptr) continue;
    float top = box->top, bottom = box->bottom;
    for (const RowBox& row : layout.rows) {
      if (row.rank != block.rank_index || !row.main) continue;
      top = row.top;
      bottom = row.bottom;
    }
    const float x0 = layout.x_of(static_cast<double>(block.range.begin_ns));
    const float x1 = std::max(layout.x_of(static_cast<double>(block.range.end_ns)), x0 + scaled(4));
    const ImVec2 from(std::max(x0, layout.plot_left), top), to(std::min(x1, layout.plot_right), bottom);
    if (from.x >= to.x) continue;
    const ImU32 color = block.activity == RankActivity::kBlocked ? theme::kBad : theme::kAccent;
    draw.AddRectFilled(from, to, with_alpha(color, 46));
    draw.AddRect(from, to, with_alpha(color, 190));
    if (!add_text(draw, from, to, theme::kText, block.words, 1))
      add_text(draw, from, to, theme::kText, block.words, kSmall);
  }
}

void RowPainter::draw_critical_path(ImDrawList& draw, const TimelineLayout& layout, const CriticalPath& path) {
  const float thick = scaled(3);
  path_y_.clear();
  for (const RowBox& row : layout.rows) {
    if (!row.main) continue;
    if (row.rank >= path_y_.size()) path_y_.resize(row.rank + 1, -1);
    path_y_[row.rank] = row.top;
  }
  const auto y_of = [&](const PathSegment& segment) {
    return segment.rank_index < path_y_.size() ? path_y_[segment.rank_index] : -1;
  };
  const auto x_of = [&](int64_t time) {
    return std::clamp(layout.x_of(static_cast<double>(time)), layout.plot_left, layout.plot_right);
  };
  const auto ends_after = [](int64_t time, const PathSegment& segment) { return time < segment.range.end_ns; };
  auto at = std::upper_bound(path.segments.begin(), path.segments.end(), static_cast<int64_t>(layout.camera.begin_ns),
                             ends_after);
  float y_before = at == path.segments.begin() || at == path.segments.end() ? -1 : y_of(*std::prev(at));
  while (at != path.segments.end() && static_cast<double>(at->range.begin_ns) < layout.camera.end_ns) {
    const float x0 = x_of(at->range.begin_ns), x1 = x_of(at->range.end_ns);
    const float y = y_of(*at);
    if (y >= 0 && y_before >= 0 && y != y_before) draw.AddLine({x0, y_before}, {x0, y}, theme::kCritical, thick / 2);
    if (y >= 0)
      draw.AddRectFilled(
          {x0, y - thick / 2}, {std::max(x1, x0 + 1), y + thick / 2},
          at->kind == PathSegment::Kind::kTransfer ? with_alpha(theme::kCritical, 130) : theme::kCritical);
    y_before = y;
    // Of segments that end within the same pixel, the first is drawn, and the last one as the start of the next line.
    const auto next = x1 - x0 >= 1 ? at + 1
                                   : std::upper_bound(at + 1, path.segments.end(),
                                                      static_cast<int64_t>(layout.time_of(x0 + 1)), ends_after);
    if (next > at + 1) y_before = y_of(*std::prev(next));
    at = next;
  }
}

void RowPainter::outline(ImDrawList& draw, const TimelineLayout& layout, const TraceStore& store, EventRef event,
                         ImU32 color, float thickness) const {
  const auto place = store.place_of(event);
  if (!place) return;
  for (const RowBox& box : layout.rows) {
    if (box.rank != place->rank_index || box.row != place->row) continue;
    if (place->depth >= box.tracks) continue;
    const RowBox::Part part = box.part(place->depth);
    const float x0 = layout.x_of(static_cast<double>(store.begin_ns(event)));
    const float x1 = std::max(layout.x_of(static_cast<double>(store.end_ns(event))), x0 + 2);
    draw.AddRect({x0 - 1, part.top - 1}, {x1 + 1, part.bottom + 1}, color, scaled(2), thickness);
  }
}

std::optional<EventRef> event_at(const TimelineLayout& layout, const TraceStore& store, ImVec2 point) {
  if (point.x < layout.plot_left || point.x > layout.plot_right) return {};
  const RowBox* box = layout.row_at(point.y);
  if (box == nullptr) return {};
  const Row& row = store.rank(box->rank).rows[box->row];
  if (row.tracks.empty()) return {};
  const Track& at = row.tracks[std::min(box->depth_at(point.y), row.tracks.size() - 1)];
  // A block is drawn at least a pixel wide.
  const auto from = static_cast<int64_t>(layout.time_of(point.x)),
             to = static_cast<int64_t>(layout.time_of(point.x + 1));
  const size_t i = at.first_ending_after(from);
  if (i == at.size() || at.begin_ns[i] > to) return {};
  return EventRef{box->rank, at.event[i]};
}

const IdleInterval* idle_at(const TimelineLayout& layout, const BubbleReport& bubbles, ImVec2 point) {
  const RowBox* box = layout.row_at(point.y);
  if (box == nullptr || !box->main || box->rank >= bubbles.ranks.size()) return nullptr;
  const std::vector<IdleInterval>& idle = bubbles.ranks[box->rank].idle;
  const auto time = static_cast<int64_t>(layout.time_of(point.x));
  const auto at = std::upper_bound(idle.begin(), idle.end(), time,
                                   [](int64_t t, const IdleInterval& interval) { return t < interval.range.end_ns; });
  return at != idle.end() && at->range.begin_ns <= time ? &*at : nullptr;
}

}  // namespace ranklab::viz
