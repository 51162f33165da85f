#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "viz/model/stage/words.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"
#include "viz/panels/stage/stage_view.h"

namespace ranklab::viz {
namespace {

struct Box {
  ImVec2 from, to;
  float width() const { return to.x - from.x; }
  float height() const { return to.y - from.y; }
  ImVec2 size() const { return {width(), height()}; }
  bool empty() const { return width() < 2 || height() < 2; }
};

// What a rank does at the current time.
struct Doing {
  const StageAction* action = nullptr;
  const StageModule* module = nullptr;
  const StageWait* wait = nullptr;
  const char* otherwise = "idle";
};

Doing doing_at(const StageRoom& room, int64_t time_ns) {
  const auto now = [time_ns](TimeRange range) { return time_ns >= range.begin_ns && time_ns < range.end_ns; };
  return {at_time(room.actions, time_ns), module_at(room, time_ns), at_time(room.waits, time_ns),
          now(room.unrecorded)                                   ? "not recorded yet"
          : std::any_of(room.lost.begin(), room.lost.end(), now) ? "not recorded"
                                                                 : "idle"};
}

ImU32 category_color(MemoryCategory category) { return im_color(colour(category)); }

void clipped_text(ImDrawList& draw, const Box& box, ImVec2 at, float font, ImU32 color, std::string_view words) {
  const float share = font / ImGui::GetFontSize();
  const std::string shown = elided(words, (box.to.x - at.x) / share);
  draw.AddText(ImGui::GetFont(), font, at, color, shown.c_str());
}

// Breaks words into at most `most` lines of a width.
std::vector<std::string> lines_of(std::string_view words, float width, float font, int most) {
  const float share = font / ImGui::GetFontSize(), room = (width - font * 0.6f) / share;
  std::vector<std::string> lines;
  while (!words.empty() && static_cast<int>(lines.size()) < most) {
    size_t fits = words.size();
    if (text_width(words) > room && static_cast<int>(lines.size()) + 1 < most) {
      fits = std::min(words.find(' '), words.size());
      for (size_t space = words.find(' ', fits + 1); space != std::string_view::npos;
           space = words.find(' ', space + 1)) {
        if (text_width(words.substr(0, space)) > room) break;
        fits = space;
      }
    }
    lines.push_back(elided(words.substr(0, fits), room));
    words.remove_prefix(std::min(fits + 1, words.size()));
  }
  return lines;
}

bool is_whole(const std::vector<std::string>& lines) { return lines.empty() || !lines.back().ends_with("..."); }

// Draws lines centred, starting at `top`.
void draw_lines(ImDrawList& draw, const Box& box, float top, float font, ImU32 color,
                const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    const float x = box.from.x + (box.width() - text_width(line) * font / ImGui::GetFontSize()) / 2;
    draw.AddText(ImGui::GetFont(), font, {std::floor(std::max(x, box.from.x)), std::floor(top)}, color, line.c_str());
    top += font * 1.12f;
  }
}

// Bytes by category, stacked from below; the frame is the device's limit, or the step's highest peak.
void memory_bar(ImDrawList& draw, const StageView& view, const StageRoom& room, const Box& box) {
  draw.AddRectFilled(box.from, box.to, theme::kField);
  const MemorySample* now = memory_at(room, view.time_ns);
  float y = box.to.y;
  if (now != nullptr && view.script.memory_top_bytes > 0) {
    for (size_t c = 0; c < kMemoryCategories; ++c) {
      const float high = box.height() * static_cast<float>(now->bytes[c] / view.script.memory_top_bytes);
      draw.AddRectFilled({box.from.x, std::max(y - high, box.from.y)}, {box.to.x, y},
                         category_color(static_cast<MemoryCategory>(c)));
      y -= high;
    }
  }
  const bool limit = room.memory.limit_bytes > 0 && view.script.memory_top_bytes >= room.memory.limit_bytes;
  draw.AddRect(box.from, box.to, limit ? theme::kBad : theme::kFaint);
}

ImU32 dark_cell() {
  return theme_kind() == ThemeKind::kLight ? IM_COL32(176, 184, 195, 255) : IM_COL32(50, 56, 66, 255);
}

// One cell for each bucket: this rank's shard is always filled, the whole cell while the bucket is gathered; it is
// hatched while it is being gathered.
void shard_strip(ImDrawList& draw, const StageView& view, const StageRoom& room, const Box& box) {
  std::vector<const ZeroBucketRow*> rows;
  for (const ZeroBucketRow& row : view.script.zero.rows)
    if (row.cells[room.rank_index].present && row.shards > 1) rows.push_back(&row);
  if (rows.empty()) return;
  const float wide = box.width() / static_cast<float>(rows.size()), gap = wide > scaled(6) ? scaled(2) : 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const ZeroBucketRow& row = *rows[i];
    const ImVec2 from(box.from.x + wide * static_cast<float>(i), box.from.y), to(from.x + wide - gap, box.to.y);
    const HeldParameters held = row.parameters_at(room.rank_index, view.time_ns, view.script.zero.stage);
    const bool lit = held == HeldParameters::kGathered;
    draw.AddRectFilled(from, to, lit ? category_color(MemoryCategory::kGathered) : dark_cell());
    if (held == HeldParameters::kGathering) hatch(draw, from, to, category_color(MemoryCategory::kGathered), scaled(4));
    const float shard = std::max((to.x - from.x) / static_cast<float>(row.shards), scaled(1.5f));
    const float left = from.x + (to.x - from.x - shard) * static_cast<float>(row.cells[room.rank_index].shard) /
                                    static_cast<float>(row.shards - 1);
    // The shard is a mark at the bottom, so that it does not cover the label.
    const float mark = std::max((to.y - from.y) * 0.3f, scaled(3));
    draw.AddRectFilled({left, to.y - mark}, {left + shard, to.y}, category_color(MemoryCategory::kParameters));
    if (to.x - from.x > scaled(13) && to.y - mark - from.y > scaled(9))
      centred_text(draw, from, {to.x - from.x, to.y - mark - from.y}, lit ? IM_COL32(20, 24, 29, 255) : theme::kText,
                   bucket_letter(row.label), 0.74f);
  }
}

// Numbers of the microbatches whose activations the rank holds; if there is no space for all, the latest ones.
void held_chips(ImDrawList& draw, const StageView& view, const StageRoom& room, const Box& box) {
  std::vector<int> now;
  for (const StageHeld& held : room.held) {
    if (held.range.begin_ns > view.time_ns) break;
    if (held.range.end_ns > view.time_ns) now.push_back(held.microbatch);
  }
  const float font = std::min(box.height() * 0.82f, ImGui::GetFontSize() * 0.85f);
  const float wide = std::max(badge_width(font, "0"), box.height() * 0.9f), step = wide + scaled(2);
  const auto fit = static_cast<size_t>(std::max(0.f, (box.width() + scaled(2)) / step));
  const size_t first = now.size() > fit ? now.size() - fit : 0;
  float x = box.from.x;
  for (size_t i = first; i < now.size(); ++i) {
    draw.AddRectFilled({x, box.from.y}, {x + wide, box.to.y}, category_color(MemoryCategory::kActivations), scaled(3));
    centred_text(draw, {x, box.from.y}, {wide, box.height()}, im_color(text_colour(Paint::kForward)),
                 std::to_string(now[i]), font / ImGui::GetFontSize());
    x += step;
  }
}

void action_box(ImDrawList& draw, const StageView& view, const Doing& doing, const Box& box) {
  const StageAction& action = *doing.action;
  const ImU32 words = im_color(text_colour(action.paint));
  draw.AddRectFilled(box.from, box.to, im_color(colour(action.paint)), scaled(3));
  // A line that shows the progress of the action.
  const double done = static_cast<double>(view.time_ns - action.range.begin_ns) /
                      static_cast<double>(std::max<int64_t>(action.range.length_ns(), 1));
  const float line = std::min(scaled(3), box.height() * 0.12f);
  draw.AddRectFilled({box.from.x, box.to.y - line},
                     {box.from.x + box.width() * static_cast<float>(std::clamp(done, 0.0, 1.0)), box.to.y},
                     with_alpha(words, 150), scaled(2));
  const float small = ImGui::GetFontSize() * 0.82f;
  const bool second = doing.module != nullptr && box.height() > ImGui::GetFontSize() * 2.3f;
  const float top = second ? box.height() * 0.5f - small * 0.1f : box.height() - line;
  const std::string& text = view.script.text(action.text);
  centred_text(draw, box.from, {box.width(), top}, words, text, std::min(1.35f, top / ImGui::GetFontSize() * 0.85f));
  if (!second) return;
  const int most = box.height() - top > small * 2.6f ? 2 : 1;
  draw_lines(draw, box, box.from.y + top, small, with_alpha(words, 225),
             lines_of(view.script.text(doing.module->text), box.width(), small, most));
  const std::string& format = view.script.text(doing.module->format);
  const float font = ImGui::GetFontSize() * 0.74f;
  if (format.empty() || badge_width(font, format.c_str()) > box.width() * 0.55f) return;
  draw_badge(draw, {box.to.x - badge_width(font, format.c_str()) - scaled(2), box.from.y + scaled(2)}, font,
             format.c_str(), im_color(precision_colour(bits_of_format(format))));
}

// Hatched by the cause, with the reason in words. If the rank is stalled inside an action, the action stays visible on
// the left.
void wait_box(ImDrawList& draw, const StageView& view, const Doing& doing, Box box) {
  draw.AddRectFilled(box.from, box.to, theme::kField, scaled(3));
  if (doing.action != nullptr && box.width() > scaled(60)) {
    const float part = std::min(box.width() * 0.28f, scaled(46));
    const Box rest{box.from, {box.from.x + part, box.to.y}};
    draw.AddRectFilled(rest.from, rest.to, im_color(colour(doing.action->paint)), scaled(3));
    centred_text(draw, rest.from, rest.size(), im_color(text_colour(doing.action->paint)),
                 view.script.text(doing.action->text), 0.95f);
    box.from.x += part;
  }
  fill_bubble(draw, box.from, box.to, doing.wait->cause, scaled(6));
  const float small = ImGui::GetFontSize() * 0.84f;
  const int lines = std::clamp(static_cast<int>(box.height() / (small * 1.15f)), 0, 3);
  if (lines == 0 || box.width() < scaled(34)) return;
  const std::string& reason = view.script.text(doing.wait->text);
  const bool done = doing.wait->cause == BubbleCause::kDrain;
  std::string words = done ? "done" : reason;
  std::vector<std::string> shown = lines_of(done ? words : "waits: " + reason, box.width(), small, lines);
  if (!is_whole(shown)) shown = lines_of(words, box.width(), small, lines);
  if (const size_t at = words.find(" is still on "); !is_whole(shown) && at != std::string::npos)
    shown = lines_of(words.replace(at, 13, " on "), box.width(), small, lines);
  const float high = static_cast<float>(shown.size()) * small * 1.12f, top = box.from.y + (box.height() - high) / 2;
  draw.AddRectFilled({box.from.x + scaled(3), top - scaled(1)}, {box.to.x - scaled(3), top + high + scaled(1)},
                     with_alpha(theme::kField, 205), scaled(2));
  draw_lines(draw, box, top, small, theme::kText, shown);
}

void activity(ImDrawList& draw, const StageView& view, const Doing& doing, const Box& box) {
  if (box.empty()) return;
  if (doing.wait != nullptr) return wait_box(draw, view, doing, box);
  if (doing.action != nullptr) return action_box(draw, view, doing, box);
  draw.AddRectFilled(box.from, box.to, theme::kField, scaled(3));
  centred_text(draw, box.from, box.size(), theme::kDim, doing.otherwise, 0.84f);
}

// A room that is too small for words: its colour shows what it does.
void tile(ImDrawList& draw, const StageView& view, const StageRoom& room, const Doing& doing, const Box& box) {
  draw.AddRectFilled(box.from, box.to, theme::kField, scaled(2));
  if (doing.wait != nullptr)
    fill_bubble(draw, box.from, box.to, doing.wait->cause, scaled(5));
  else if (doing.action != nullptr)
    draw.AddRectFilled(box.from, box.to, im_color(colour(doing.action->paint)), scaled(2));
  const bool works = doing.action != nullptr && doing.wait == nullptr;
  const ImU32 words = works ? im_color(text_colour(doing.action->paint)) : theme::kText;
  std::string text = room.name;
  if (works && box.width() > scaled(58)) text += " " + view.script.text(doing.action->text);
  if (box.width() > scaled(22)) centred_text(draw, box.from, box.size(), words, text, 0.8f);
}

// The top of the node's highest room.
double highest_room(const StageScript& script, const StageNode& node) {
  double top = node.box.y1;
  for (const StageRoom& room : script.rooms)
    if (room.box.x0 >= node.box.x0 && room.box.x1 <= node.box.x1 && room.box.y0 >= node.box.y0 &&
        room.box.y1 <= node.box.y1)
      top = std::min<double>(top, room.box.y0);
  return top;
}

}  // namespace

void draw_links(ImDrawList& draw, const StageView& view) {
  constexpr size_t kMostLinks = 64;
  if (view.script.paths.size() > kMostLinks) return;
  for (const StagePath& path : view.script.paths)
    draw.AddBezierQuadratic(view.at(path.x0, path.y0), view.at(path.control_x, path.control_y),
                            view.at(path.x1, path.y1), with_alpha(theme::kFaint, 60), scaled(1));
}

void draw_nodes(ImDrawList& draw, const StageView& view) {
  for (const StageNode& node : view.script.nodes) {
    const ImVec2 from = view.at(node.box.x0, node.box.y0), to = view.at(node.box.x1, node.box.y1);
    draw.AddRectFilled(from, to, blend(theme::kWindow, theme::kStripe, 0.7f), scaled(8));
    draw.AddRect(from, to, theme::kLine, scaled(8), scaled(1.5f));
    const float font = ImGui::GetFontSize() * 0.78f;
    const std::string words = "node " + std::to_string(node.number);
    const float width = ImGui::GetFont()->CalcTextSizeA(font, FLT_MAX, 0, words.c_str()).x;
    const float margin = view.at(0, highest_room(view.script, node)).y - from.y;
    if (width + scaled(20) > to.x - from.x || margin < font * 1.3f) continue;
    const ImVec2 at(from.x + scaled(8), from.y + scaled(2));
    draw.AddText(ImGui::GetFont(), font, at, theme::kDim, words.c_str());
  }
}

void draw_room(ImDrawList& draw, const StageView& view, const StageRoom& room, bool shown, bool chosen) {
  const Box box{view.at(room.box.x0, room.box.y0), view.at(room.box.x1, room.box.y1)};
  const Doing doing = doing_at(room, view.time_ns);
  const float line = ImGui::GetFontSize();
  const bool words = box.width() > scaled(84) && box.height() > line * 3.1f;
  if (!words) {
    tile(draw, view, room, doing, box);
  } else {
    draw.AddRectFilled(box.from, box.to, theme::kTile, scaled(5));
    const float pad = scaled(5), bar = std::clamp(box.width() * 0.07f, scaled(7), scaled(16));
    const bool memory = !room.memory.samples.empty();
    Box rest{{box.from.x + pad, box.from.y + scaled(2)},
             {box.to.x - pad - (memory ? bar + scaled(4) : 0), box.to.y - pad}};
    if (memory) memory_bar(draw, view, room, {{box.to.x - pad - bar, box.from.y + pad}, {box.to.x - pad, rest.to.y}});
    draw.AddText({rest.from.x, rest.from.y}, theme::kText, room.name.c_str());
    const float small = line * 0.8f, after = text_width(room.name) + scaled(7);
    clipped_text(draw, rest, {rest.from.x + after, rest.from.y + line * 0.16f}, small, theme::kDim, room.coordinates);
    rest.from.y += line * 1.2f;
    if (view.script.has_shards() && rest.height() > line * 1.9f) {
      const float high = std::clamp(rest.height() * 0.24f, scaled(8), scaled(24));
      shard_strip(draw, view, room, {{rest.from.x, rest.to.y - high}, rest.to});
      rest.to.y -= high + scaled(4);
    }
    if (room.held.size() > 1 && rest.height() > line * 2.2f) {
      const float high = line * 0.95f;
      held_chips(draw, view, room, {{rest.from.x, rest.to.y - high}, rest.to});
      rest.to.y -= high + scaled(3);
    }
    activity(draw, view, doing, rest);
  }
  if (!shown) draw.AddRectFilled(box.from, box.to, with_alpha(theme::kWindow, 175), scaled(5));
  draw.AddRect(box.from, box.to, chosen ? theme::kCursor : theme::kLine, scaled(5), scaled(chosen ? 2 : 1));
}

void room_tooltip(const TraceStore& store, const StageView& view, const StageRoom& room) {
  if (!ImGui::BeginTooltip()) return;
  const Doing doing = doing_at(room, view.time_ns);
  text(room.name + (room.coordinates.empty() ? "" : "  " + room.coordinates) +
       (room.node < 0 ? "" : "  node " + std::to_string(room.node)));
  if (doing.action != nullptr) {
    std::string words = "runs " + view.script.text(doing.action->text);
    if (doing.module != nullptr) words += ": " + view.script.text(doing.module->text);
    if (doing.module != nullptr && doing.module->format != kNoText)
      words += " in " + view.script.text(doing.module->format);
    text(words);
  }
  if (doing.wait != nullptr)
    text("waits " + format_time(store, doing.wait->range.length_ns()) + " (" + std::string(name(doing.wait->cause)) +
         "): " + view.script.text(doing.wait->text));
  if (const MemorySample* memory = memory_at(room, view.time_ns)) {
    std::string words = "holds " + human_bytes(memory->total());
    if (room.memory.limit_bytes > 0)
      words += strprintf(", %.3g %% of %s", 100 * memory->total() / room.memory.limit_bytes,
                         human_bytes(room.memory.limit_bytes).c_str());
    dim_text(words);
    for (size_t c = 0; c < kMemoryCategories; ++c)
      if (memory->bytes[c] > 0)
        swatch(category_color(static_cast<MemoryCategory>(c)),
               std::string(name(static_cast<MemoryCategory>(c))) + " " + human_bytes(memory->bytes[c]));
  }
  dim_text("click: this rank alone");
  ImGui::EndTooltip();
}

}  // namespace ranklab::viz
