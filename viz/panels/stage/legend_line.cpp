// The meaning of the colours of what travels, of what rooms hold, and of number formats. Only those that occur in the
// step.
#include <algorithm>
#include <array>
#include <set>

#include "core/base/text.h"
#include "viz/model/stage/words.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"
#include "viz/panels/stage/stage_view.h"

namespace ranklab::viz {
namespace {

struct LegendItem {
  enum class Look : uint8_t { kSquare, kHatched, kCause, kBadge, kWords };
  Look look = Look::kSquare;
  ImU32 color = 0;
  std::string words;
  BubbleCause cause = BubbleCause::kHost;
  bool bright = true;

  float width() const {
    const float font = ImGui::GetFontSize();
    if (look == Look::kBadge) return badge_width(font * 0.8f, words.c_str());
    return text_width(words) + (look == Look::kWords ? 0 : look == Look::kSquare ? font * 1.1f : font * 1.9f);
  }
};

void draw_item(const LegendItem& item) {
  const float font = ImGui::GetFontSize();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  ImGui::PushStyleColor(ImGuiCol_Text, item.bright ? theme::kText : theme::kDim);
  switch (item.look) {
    case LegendItem::Look::kSquare:
      swatch(item.color, item.words);
      break;
    case LegendItem::Look::kCause:
      swatch(item.cause, item.words);
      break;
    case LegendItem::Look::kHatched: {
      const float high = font * 0.72f, wide = font * 1.5f;
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const float top = at.y + (ImGui::GetTextLineHeight() - high) / 2 + 1;
      hatch(draw, {at.x, top}, {at.x + wide, top + high}, item.color, scaled(4));
      ImGui::Dummy({wide, ImGui::GetTextLineHeight()});
      ImGui::SameLine(0, font * 0.35f);
      text(item.words);
      break;
    }
    case LegendItem::Look::kBadge: {
      const ImVec2 at = ImGui::GetCursorScreenPos();
      const float wide = draw_badge(draw, {at.x, at.y + font * 0.1f}, font * 0.8f, item.words.c_str(), item.color);
      ImGui::Dummy({wide, ImGui::GetTextLineHeight()});
      break;
    }
    case LegendItem::Look::kWords:
      text(item.words);
      break;
  }
  ImGui::PopStyleColor();
}

bool running(const StageView& view, const std::vector<uint32_t>& flows, size_t kind) {
  return std::any_of(flows.begin(), flows.end(), [&](uint32_t index) {
    const StageFlow& flow = view.script.flows[index];
    return flow.kind == kind && flow.range.end_ns >= view.time_ns;
  });
}

void add_flows(const StageView& view, const std::vector<uint32_t>& flows, std::vector<LegendItem>& items) {
  for (size_t kind = 0; kind < view.script.kinds.size(); ++kind)
    items.push_back({.color = flow_color(view.script.kinds[kind]),
                     .words = view.script.kinds[kind].words,
                     .bright = running(view, flows, kind)});
}

void add_formats(const StageScript& script, std::vector<LegendItem>& items) {
  if (script.formats.empty()) return;
  items.push_back({.look = LegendItem::Look::kWords, .words = "multiplies in", .bright = false});
  for (const std::string& format : script.formats)
    items.push_back({.look = LegendItem::Look::kBadge,
                     .color = im_color(precision_colour(bits_of_format(format))),
                     .words = format});
}

void add_held(const StageScript& script, std::vector<LegendItem>& items) {
  const auto color = [](MemoryCategory category) { return im_color(colour(category)); };
  const bool microbatches =
      std::any_of(script.rooms.begin(), script.rooms.end(), [](const StageRoom& room) { return room.held.size() > 1; });
  if (microbatches)
    items.push_back({.color = color(MemoryCategory::kActivations), .words = "number: a microbatch, held or moving"});
  if (!script.has_shards()) return;
  items.push_back({.color = color(MemoryCategory::kParameters), .words = "own shard"});
  items.push_back(
      {.look = LegendItem::Look::kHatched, .color = color(MemoryCategory::kGathered), .words = "layer being gathered"});
  items.push_back({.color = color(MemoryCategory::kGathered), .words = "gathered"});
}

void add_causes(const StageScript& script, std::vector<LegendItem>& items) {
  std::set<BubbleCause> causes;
  for (const StageRoom& room : script.rooms)
    for (const StageWait& wait : room.waits) causes.insert(wait.cause);
  for (const BubbleCause cause : causes)
    items.push_back({.look = LegendItem::Look::kCause, .words = std::string(name(cause)), .cause = cause});
}

void add_memory(const StageScript& script, std::vector<LegendItem>& items) {
  std::array<bool, kMemoryCategories> seen{};
  for (const StageRoom& room : script.rooms)
    for (size_t c = 0; c < kMemoryCategories; ++c)
      if (!room.memory.samples.empty() && room.memory.peak.bytes[c] > 0) seen[c] = true;
  if (std::find(seen.begin(), seen.end(), true) == seen.end()) return;
  items.push_back(
      {.look = LegendItem::Look::kWords, .words = "bar: memory, up to " + memory_scale_text(script), .bright = false});
  for (size_t c = 0; c < kMemoryCategories; ++c) {
    const auto category = static_cast<MemoryCategory>(c);
    const bool told = category == MemoryCategory::kGathered && script.has_shards();
    if (seen[c] && !told) items.push_back({.color = im_color(colour(category)), .words = std::string(name(category))});
  }
}

}  // namespace

void stage_legend(const StageView& view, const std::vector<uint32_t>& flows, int lines) {
  std::vector<LegendItem> items;
  add_flows(view, flows, items);
  add_formats(view.script, items);
  add_held(view.script, items);
  add_causes(view.script, items);
  add_memory(view.script, items);
  const float gap = scaled(13), mark = text_width("(?)") + gap;
  const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  int line = 1;
  for (size_t i = 0; i < items.size(); ++i) {
    const float end = ImGui::GetItemRectMax().x + gap + items[i].width();
    const bool last_line = line == lines, last = i + 1 == items.size();
    if (i > 0 && end + (last_line && !last ? mark : 0) <= right) {
      ImGui::SameLine(0, gap);
    } else if (i > 0 && last_line) {
      ImGui::SameLine(0, gap);
      dim_text("(?)");
      if (!ImGui::BeginItemTooltip()) return;
      for (const LegendItem& item : items) draw_item(item);
      return ImGui::EndTooltip();
    } else if (i > 0) {
      ++line;
    }
    draw_item(items[i]);
  }
}

}  // namespace ranklab::viz
