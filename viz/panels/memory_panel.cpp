#include "viz/panels/memory_panel.h"

#include <imgui.h>
#include <implot.h>

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/plots.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

bool rank_combo(const char* id, const TraceStore& store, int& rank, bool may_be_none) {
  bool changed = false;
  const std::string now = rank < 0 ? "no other" : store.rank(static_cast<size_t>(rank)).label;
  if (!ImGui::BeginCombo(id, now.c_str())) return false;
  if (may_be_none && ImGui::Selectable("no other", rank < 0)) rank = -1, changed = true;
  for (int i = 0; i < static_cast<int>(store.ranks().size()); ++i)
    if (ImGui::Selectable(store.rank(static_cast<size_t>(i)).label.c_str(), rank == i)) rank = i, changed = true;
  ImGui::EndCombo();
  return changed;
}

// Shows how much of the device's memory the peak uses.
void limit_text(const RankMemory& rank) {
  if (rank.limit_bytes <= 0) return;
  const std::string words = strprintf("limit %s, at most %.3g %% of it in use", human_bytes(rank.limit_bytes).c_str(),
                                      100 * rank.share_of_limit());
  same_line_if_fits(text_width(words));
  dim_text(words);
}

// The line is drawn only for a model that comes near the limit; otherwise it would not be informative.
constexpr float kLeastLines = 6;  // minimum height of a plot, in text lines
constexpr double kNearLimit = 0.4;
double axis_top(const RankMemory& rank) {
  return rank.share_of_limit() < kNearLimit ? rank.peak.total() : std::max(rank.peak.total(), rank.limit_bytes);
}
void draw_limit(const RankMemory& rank) {
  if (rank.share_of_limit() < kNearLimit) return;
  ImPlotSpec spec;
  spec.LineColor = plot_color(theme::kBad);
  spec.Flags = ImPlotInfLinesFlags_Horizontal;
  ImPlot::PlotInfLines("limit", &rank.limit_bytes, 1, spec);
}

}  // namespace

const std::vector<RankMemory>& MemoryPanel::table(Workspace& workspace) {
  return table_.get(workspace.content(), [&] { return memory_table(workspace.store(), workspace.window()); });
}

std::string MemoryPanel::nothing_to_show(Workspace& workspace) {
  if (workspace.store().empty()) return workspace.why_empty();
  if (!has_memory(table(workspace)))
    return "The trace has no memory counters.\n\n./ranklab train --train-iters 3   records bytes by category";
  return {};
}

void MemoryPanel::draw(Workspace& workspace) {
  const std::vector<RankMemory>& all = table(workspace);
  const int last = static_cast<int>(all.size()) - 1;
  rank_ = std::clamp(rank_, 0, last);
  other_ = std::min(other_, last);
  ImGui::SetNextItemWidth(scaled(170));
  rank_combo("##rank", workspace.store(), rank_, false);
  ImGui::SameLine();
  dim_text("beside");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(scaled(170));
  rank_combo("##other", workspace.store(), other_, true);
  for (size_t c = 0; c < kMemoryCategories; ++c) {
    const auto category = static_cast<MemoryCategory>(c);
    same_line_if_fits(swatch_width(name(category)));
    swatch(im_color(colour(category)), name(category));
  }
  limit_text(all[static_cast<size_t>(rank_)]);
  const ImVec2 space = ImGui::GetContentRegionAvail();
  // In a low panel both parts keep a readable height, and the panel scrolls.
  const float line = ImGui::GetTextLineHeightWithSpacing();
  const float table_height =
      std::min(std::max(space.y * 0.45f, 4 * line), line * (static_cast<float>(all.size()) + 2.2f));
  if (ImGui::BeginChild("plots", {0, std::max(space.y - table_height, kLeastLines * line)})) {
    const float width = other_ < 0 ? -1 : (space.x - ImGui::GetStyle().ItemSpacing.x) / 2;
    // Both plots have the same scale.
    const double top = std::max(axis_top(all[static_cast<size_t>(rank_)]),
                                other_ < 0 ? 0.0 : axis_top(all[static_cast<size_t>(other_)]));
    plot(workspace, all, static_cast<size_t>(rank_), {width, top});
    if (other_ >= 0) {
      ImGui::SameLine();
      plot(workspace, all, static_cast<size_t>(other_), {width, top});
    }
  }
  ImGui::EndChild();
  peaks(workspace, all, table_height);
}

void MemoryPanel::plot(Workspace& workspace, const std::vector<RankMemory>& all, size_t rank, const PlotSize& size) {
  const auto& stacks = stacks_.get(workspace.content(), [&] {
    std::vector<Stack> made(all.size());
    for (size_t r = 0; r < all.size(); ++r) {
      made[r].upto.resize(kMemoryCategories);
      for (const MemorySample& sample : all[r].samples) {
        made[r].time_ns.push_back(static_cast<double>(sample.time_ns));
        double sum = 0;
        for (size_t c = 0; c < kMemoryCategories; ++c) made[r].upto[c].push_back(sum += sample.bytes[c]);
      }
    }
    return made;
  });
  const Stack& stack = stacks[rank];
  const std::string title = workspace.store().rank(rank).label + "##" + std::to_string(rank);
  const float height = ImGui::GetContentRegionAvail().y;
  if (!ImPlot::BeginPlot(title.c_str(), {size.width, -1}, ImPlotFlags_NoLegend | ImPlotFlags_NoMouseText)) return;
  setup_time_axis(workspace);
  setup_bytes_axis(size.top_bytes, height);
  // From the total downwards, so that each area covers those of the categories below it.
  for (size_t c = kMemoryCategories; c-- > 0;) {
    const auto category = static_cast<MemoryCategory>(c);
    const ImVec4 color = plot_color(im_color(colour(category)));
    ImPlotSpec spec;
    spec.LineColor = spec.FillColor = color;
    spec.Flags = ImPlotStairsFlags_Shaded;
    ImPlot::PlotStairs(std::string(name(category)).c_str(), stack.time_ns.data(), stack.upto[c].data(),
                       static_cast<int>(stack.time_ns.size()), spec);
  }
  const ImPlotRange seen = ImPlot::GetPlotLimits().X;
  if (const auto high = fullest(all[rank], {std::llround(seen.Min), std::llround(seen.Max)}))
    ImPlot::Annotation(std::max(static_cast<double>(high->time_ns), seen.Min), high->total(),
                       plot_color(theme::kCursor), {8, -8}, true, "%s", fullest_text(all[rank], *high).c_str());
  draw_limit(all[rank]);
  draw_time_cursor(workspace);
  ImPlot::EndPlot();
}

void MemoryPanel::peaks(Workspace& workspace, const std::vector<RankMemory>& all, float height) {
  const int columns = static_cast<int>(kMemoryCategories) + 5;
  constexpr ImGuiTableFlags kFlags =
      ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollX | ImGuiTableFlags_ScrollY | ImGuiTableFlags_SizingFixedFit;
  if (!ImGui::BeginTable("peaks", columns, kFlags, {0, height - ImGui::GetStyle().ItemSpacing.y})) return;
  ImGui::TableSetupScrollFreeze(1, 1);
  for (const char* heading : {"rank", "peak", "in step"}) ImGui::TableSetupColumn(heading);
  for (size_t c = 0; c < kMemoryCategories; ++c)
    ImGui::TableSetupColumn(std::string(name(static_cast<MemoryCategory>(c))).c_str());
  for (const char* heading : {"unknown", "of limit"}) ImGui::TableSetupColumn(heading);
  ImGui::TableHeadersRow();
  for (size_t r = 0; r < all.size(); ++r) {
    const RankMemory& memory = all[r];
    ImGui::PushID(static_cast<int>(r));
    ImGui::TableNextColumn();
    if (ImGui::Selectable(strprintf("r%d", memory.global_rank).c_str(), static_cast<int>(r) == rank_,
                          ImGuiSelectableFlags_SpanAllColumns)) {
      rank_ = static_cast<int>(r);
      if (!memory.samples.empty()) workspace.set_time(memory.peak.time_ns);
    }
    ImGui::TableNextColumn();
    right_text(bytes_text(memory.peak.total()));
    ImGui::TableNextColumn();
    right_text(memory.peak.step < 0 ? "-" : strprintf("%d", memory.peak.step));
    for (size_t c = 0; c < kMemoryCategories; ++c) {
      ImGui::TableNextColumn();
      right_text(bytes_text(memory.peak.bytes[c]));
    }
    ImGui::TableNextColumn();
    right_text(bytes_text(memory.other_bytes));
    ImGui::TableNextColumn();
    right_text(memory.limit_bytes > 0 ? strprintf("%.3g %%", 100 * memory.share_of_limit()) : "-");
    ImGui::PopID();
  }
  ImGui::EndTable();
}

}  // namespace ranklab::viz
