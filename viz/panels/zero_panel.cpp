#include "viz/panels/zero_panel.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "core/base/zero_stage.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

constexpr ImU32 kPadding = IM_COL32(70, 78, 90, 255);

ImU32 category(MemoryCategory which) { return im_color(colour(which)); }

std::string bytes_text(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

// One lane of a cell; its full width is the bucket.
struct Lane {
  ImDrawList& draw;
  ImVec2 from, to;

  ImVec2 at(double share) const { return {from.x + (to.x - from.x) * static_cast<float>(share), from.y}; }
  void fill(double begin, double end, ImU32 color) const {
    const ImVec2 left = at(begin);
    draw.AddRectFilled(left, {std::max(at(end).x, left.x + 1), to.y}, color);
  }
  void hatched(double begin, double end, ImU32 color) const {
    hatch(draw, at(begin), {at(end).x, to.y}, color, scaled(5));
  }
};

}  // namespace

struct ZeroPanel::Look {
  HeldParameters parameters = HeldParameters::kWhole;
  HeldGradients gradients = HeldGradients::kNone;
  bool optimizer_shard = false;
  double begin = 0, end = 1;  // the shard, as a fraction of the bucket
  double padding = 0;         // at the end, as a fraction of the bucket
};

const ZeroTable& ZeroPanel::table(Workspace& workspace) {
  const int step = workspace.step();
  return table_.get({workspace.content(workspace.store().whole()), step}, [&] {
    ZeroTable found = zero_table(workspace.store(), step);
    return found.empty() ? zero_table(workspace.store(), -1) : found;
  });
}

std::string ZeroPanel::nothing_to_show(Workspace& workspace) {
  if (workspace.store().empty()) return workspace.why_empty();
  if (table(workspace).empty())
    return "The trace has no gradient buckets.\n\n./ranklab train --dp 8 --zero-stage 3 --train-iters 3   records them";
  return {};
}

int ZeroPanel::drawn_stage(Workspace& workspace) {
  return view_ == View::kRun ? table(workspace).stage : static_cast<int>(view_) - 1;
}

void ZeroPanel::draw(Workspace& workspace) {
  const ZeroTable& all = table(workspace);
  controls(workspace);
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const bool beside = space.x > scaled(900);
  const float tables = beside ? scaled(430) : space.x;
  const float line = ImGui::GetTextLineHeightWithSpacing();
  const ImVec2 size(beside ? space.x - tables - scaled(14) : space.x, beside ? space.y : space.y - line * 7.5f);
  if (ImGui::BeginChild("grid", {size.x, std::max(size.y, scaled(80))})) grid(workspace, all, {size.x, 0});
  ImGui::EndChild();
  if (beside) ImGui::SameLine(0, scaled(14));
  if (ImGui::BeginChild("stages")) stages(workspace, all);
  ImGui::EndChild();
}

void ZeroPanel::controls(Workspace& workspace) {
  const char* const kViews[] = {"run", "0", "1", "2", "3"};
  choice(kViews, view_);
  tooltip("run: as it is at the cursor. 0 to 3: what each rank would hold at the update with that ZeRO stage");
  ImGui::SameLine(0, scaled(12));
  const std::pair<MemoryCategory, const char*> kLegend[] = {{MemoryCategory::kParameters, "parameters"},
                                                            {MemoryCategory::kGathered, "gathered"},
                                                            {MemoryCategory::kGradients, "gradients"},
                                                            {MemoryCategory::kOptimizer, "optimizer"}};
  for (const auto& [which, word] : kLegend) {
    same_line_if_fits(scaled(100));
    swatch(category(which), word);
    ImGui::SameLine(0, scaled(10));
  }
  help_marker(
      "A cell is a bucket on a rank; its three lanes are parameters, gradients, optimizer states, each as wide as the "
      "whole bucket.\nFilled: held. Hatched: on its way, or (gradients) this rank's sum alone. Grey at the end: "
      "padding.");
  same_line_if_fits(scaled(70));
  dim_text(strprintf("step %d", table(workspace).step));
}

void ZeroPanel::header(Workspace& workspace, const ZeroTable& all, ImVec2 at, float label, float cell_width) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float line = ImGui::GetTextLineHeight();
  const int stage = drawn_stage(workspace);
  // If cells are narrow, not all of them have their rank above them, and there are no sums.
  const float words = text_width("r" + std::to_string(workspace.store().ranks().back().global_rank)) + scaled(4);
  RoomForLabels room(words);
  for (size_t rank = 0; rank < workspace.store().ranks().size(); ++rank) {
    const ImVec2 corner(at.x + label + cell_width * static_cast<float>(rank), at.y);
    const float wide = std::max(cell_width, words);
    if (room.take(corner.x))
      centred_text(draw, {corner.x + (cell_width - wide) / 2, corner.y}, {wide, line}, theme::kDim,
                   "r" + std::to_string(workspace.store().rank(rank).global_rank), 0.95f);
    const ZeroBytes held =
        view_ == View::kRun ? all.bytes_at(rank, workspace.cursor.time_ns) : all.bytes_of_stage(rank, stage);
    centred_text(draw, {corner.x, corner.y + line}, {cell_width, line}, theme::kText, bytes_text(held.together()),
                 0.9f);
  }
}

void ZeroPanel::grid(Workspace& workspace, const ZeroTable& all, ImVec2 size) {
  const size_t ranks = workspace.store().ranks().size();
  float label = scaled(60);
  for (const ZeroBucketRow& row : all.rows)
    label = std::max(label, std::min(ImGui::CalcTextSize(row.label.c_str()).x + scaled(10), size.x * 0.3f));
  const float width = (size.x - label - scaled(16)) / static_cast<float>(std::max<size_t>(ranks, 1));
  const float line = ImGui::GetTextLineHeight(), head = 2 * line + scaled(6);
  const float room = ImGui::GetContentRegionAvail().y - head;
  const float height = std::clamp(room / static_cast<float>(all.rows.size()), scaled(18), scaled(46));
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  header(workspace, all, corner, label, width);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const int stage = drawn_stage(workspace);
  const ZeroStage& zero = zero_stage_row(stage);
  for (size_t r = 0; r < all.rows.size(); ++r) {
    const ZeroBucketRow& row = all.rows[r];
    const float top = corner.y + head + height * static_cast<float>(r);
    draw.PushClipRect({corner.x, top}, {corner.x + label - scaled(4), top + height}, true);
    draw.AddText({corner.x, top + (height - line) / 2}, theme::kText, row.label.c_str());
    draw.PopClipRect();
    for (size_t rank = 0; rank < ranks; ++rank) {
      if (!row.cells[rank].present) continue;
      const bool shared = row.shards > 1;
      Look look{.optimizer_shard = zero.optimizer && shared};
      if (view_ == View::kRun) {
        look.parameters = row.parameters_at(rank, workspace.cursor.time_ns, stage);
        look.gradients = row.gradients_at(rank, workspace.cursor.time_ns, stage);
      } else {
        look.parameters = zero.parameters && shared ? HeldParameters::kShard : HeldParameters::kWhole;
        look.gradients = zero.gradients && shared ? HeldGradients::kReducedShard : HeldGradients::kReduced;
      }
      look.begin = static_cast<double>(row.cells[rank].shard) / row.shards;
      look.end = static_cast<double>(row.cells[rank].shard + 1) / row.shards;
      look.padding = row.elements > 0 ? static_cast<double>(row.padding) / static_cast<double>(row.elements) : 0;
      cell(look, {corner.x + label + width * static_cast<float>(rank), top}, {width - scaled(5), height - scaled(4)});
    }
  }
  ImGui::Dummy({size.x - scaled(16), head + height * static_cast<float>(all.rows.size())});
  if (!ImGui::IsItemHovered()) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const float x = (mouse.x - corner.x - label) / width, y = (mouse.y - corner.y - head) / height;
  if (x < 0 || y < 0 || static_cast<size_t>(x) >= ranks || static_cast<size_t>(y) >= all.rows.size()) return;
  cell_tooltip(workspace, all.rows[static_cast<size_t>(y)], static_cast<size_t>(x));
}

void ZeroPanel::cell(const Look& look, ImVec2 at, ImVec2 size) const {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  draw.AddRectFilled(at, {at.x + size.x, at.y + size.y}, theme::kField);
  const float gap = size.y > scaled(20) ? scaled(2) : 1, each = (size.y - 2 * gap) / 3;
  const auto lane = [&](int index) {
    const float top = at.y + (each + gap) * static_cast<float>(index);
    return Lane{draw, {at.x, top}, {at.x + size.x, top + each}};
  };
  const ImU32 parameters = category(MemoryCategory::kParameters), gathered = category(MemoryCategory::kGathered);
  const ImU32 gradients = category(MemoryCategory::kGradients), optimizer = category(MemoryCategory::kOptimizer);
  const double real = 1 - look.padding;

  const Lane p = lane(0);
  if (look.parameters == HeldParameters::kGathered) p.fill(0, real, with_alpha(gathered, 200));
  if (look.parameters == HeldParameters::kGathering) p.hatched(0, real, gathered);
  const bool whole = look.parameters == HeldParameters::kWhole;
  p.fill(whole ? 0 : look.begin, whole ? real : look.end, parameters);

  const Lane g = lane(1);
  if (look.gradients == HeldGradients::kPartial) g.hatched(0, real, gradients);
  if (look.gradients == HeldGradients::kReduced) g.fill(0, real, gradients);
  if (look.gradients == HeldGradients::kReducedShard) g.fill(look.begin, look.end, gradients);

  lane(2).fill(look.optimizer_shard ? look.begin : 0, look.optimizer_shard ? look.end : real, optimizer);
  if (look.padding > 0.004) {
    for (int index = 0; index < 3; ++index) lane(index).fill(real, 1, kPadding);
  }
}

void ZeroPanel::cell_tooltip(Workspace& workspace, const ZeroBucketRow& row, size_t rank) const {
  if (!row.cells[rank].present || !ImGui::BeginTooltip()) return;
  const int64_t shard = row.elements / row.shards, first = shard * row.cells[rank].shard;
  text(workspace.store().rank(rank).label + ", " + row.label);
  dim_text(strprintf("%ld elements of %ld bytes, %ld of them padding", static_cast<long>(row.elements),
                     static_cast<long>(row.element_bytes), static_cast<long>(row.padding)));
  if (row.shards > 1)
    dim_text(strprintf("part %d of %d: elements [%ld, %ld)", row.cells[rank].shard, row.shards,
                       static_cast<long>(first), static_cast<long>(first + shard)));
  const auto& history = row.cells[rank].history;
  const auto after = std::upper_bound(history.begin(), history.end(), workspace.cursor.time_ns,
                                      [](int64_t time, const auto& entry) { return time < entry.first; });
  if (after != history.begin()) {
    const auto& [when, state] = *(after - 1);
    const std::string_view name = kZeroStateEvents[static_cast<size_t>(state)];
    dim_text("last: " + std::string(name.substr(5, name.size() - 6)) + " at " + format_time(workspace.store(), when));
  }
  ImGui::EndTooltip();
}

void ZeroPanel::stages(Workspace& workspace, const ZeroTable& all) const {
  size_t fullest = 0;
  for (size_t rank = 1; rank < workspace.store().ranks().size(); ++rank)
    if (all.elements(rank) > all.elements(fullest)) fullest = rank;
  dim_text("at the update, " + workspace.store().rank(fullest).label);
  if (!ImGui::BeginTable("stages", 6, ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingStretchProp)) return;
  for (const char* title : {"stage", "param.", "grad.", "optim.", "sum", "B each"}) ImGui::TableSetupColumn(title);
  ImGui::TableHeadersRow();
  for (int stage = 0; stage < static_cast<int>(kZeroStages.size()); ++stage) {
    const ZeroBytes held = all.bytes_of_stage(fullest, stage);
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    colored_text(stage == all.stage ? theme::kAccent : theme::kText,
                 std::to_string(stage) + (stage == all.stage ? "  run" : ""));
    for (const int64_t bytes : {held.parameters, held.gradients, held.optimizer, held.together()}) {
      ImGui::TableNextColumn();
      text(bytes_text(bytes));
    }
    ImGui::TableNextColumn();
    const auto elements = static_cast<double>(std::max<int64_t>(all.elements(fullest), 1));
    text(strprintf("%.2f", static_cast<double>(held.together()) / elements));
  }
  ImGui::EndTable();
}

}  // namespace ranklab::viz
