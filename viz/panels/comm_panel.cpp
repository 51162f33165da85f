#include "viz/panels/comm_panel.h"

#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>

#include "core/base/text.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

constexpr int kCommColumns = static_cast<int>(CommColumn::kCount);

bool is_number(CommColumn column) {
  return column != CommColumn::kAxis && column != CommColumn::kVerb && column != CommColumn::kPurpose &&
         column != CommColumn::kDtype;
}

// Whether every word of the filter occurs in the call's verb, axis, purpose, dtype or group.
bool fits(const CommCall& call, const std::string& filter) {
  const std::string all = std::string(name(call.verb)) + " " + std::string(name(call.axis)) + " " +
                          std::string(name(call.purpose)) + " " + std::string(name(call.dtype)) + " [" +
                          join(std::span<const int>(call.group), " ") + "]";
  size_t begin = 0;
  while (begin < filter.size()) {
    const size_t end = std::min(filter.find(' ', begin), filter.size());
    if (end > begin && all.find(filter.substr(begin, end - begin)) == std::string::npos) return false;
    begin = end + 1;
  }
  return true;
}

bool has_side(const CommCall& call, EventRef event) {
  return std::any_of(call.sides.begin(), call.sides.end(), [&](const CommSide& side) { return side.event == event; });
}

// One call of a member: its letters, with a red frame if the members diverge there.
void call_cell(const MismatchView& view, size_t member, size_t i) {
  const MismatchView::Cell& cell = view.cells[member][i];
  const int64_t sequence = view.first_sequence + static_cast<int64_t>(i);
  const Paint paint = paint_of({.kind = EventKind::kCollective, .verb = cell.verb}, {});
  const ImVec2 at = ImGui::GetCursorScreenPos(), size(ImGui::GetFontSize() * 1.7f, ImGui::GetFontSize() * 1.15f);
  const ImVec2 end(at.x + size.x, at.y + size.y);
  ImGui::Dummy(size);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  if (cell.made) {
    draw.AddRectFilled(at, end, im_color(colour(paint)), 2);
    const float height = ImGui::GetFontSize() * 0.8f;
    const std::string words(letters(paint));
    const float width = ImGui::GetFont()->CalcTextSizeA(height, FLT_MAX, 0, words.c_str()).x;
    draw.AddText(ImGui::GetFont(), height, {at.x + (size.x - width) / 2, at.y + (size.y - height) / 2},
                 im_color(text_colour(paint)), words.c_str());
  }
  const bool here = view.divergence == sequence;
  draw.AddRect(at, end, here ? theme::kBad : theme::kLine, 2, here ? scaled(2) : 1);
  const std::string what = cell.made ? std::string(name(cell.verb)) + " " + std::string(name(cell.dtype)) + ", " +
                                           human_bytes(static_cast<double>(cell.logical_bytes))
                                     : "not made";
  if (ImGui::IsItemHovered()) ImGui::SetTooltip("call %lld: %s", static_cast<long long>(sequence), what.c_str());
}

std::string moment(const TraceStore& store, int64_t time_ns) {
  return time_ns == kNoTime ? "-" : format_time(store, time_ns - store.range().begin_ns);
}

}  // namespace

const std::vector<CommCall>& CommPanel::calls(Workspace& workspace) {
  return calls_.get(workspace.content(), [&] { return comm_calls(workspace.store(), workspace.window()); });
}

std::string CommPanel::nothing_to_show(Workspace& workspace) {
  if (workspace.store().empty()) return workspace.why_empty();
  if (const std::string_view why = workspace.why_phases_only(); !why.empty()) return std::string(why);
  if (calls(workspace).empty())
    return "No call in this part of the trace.\n\n./ranklab train --tp 2 --train-iters 3   makes many";
  return {};
}

void CommPanel::draw(Workspace& workspace) {
  if (!ImGui::BeginTabBar("views")) return;
  if (ImGui::BeginTabItem("Calls")) {
    const std::vector<CommCall>& all = calls(workspace);
    if (!(ordered_for_ == workspace.content())) resort_ = true;
    ordered_for_ = workspace.content();
    ImGui::SetNextItemWidth(scaled(220));
    ImGui::InputTextWithHint("##filter", "filter: all_reduce tp", &filter_);
    if (filter_ != filtered_by_) resort_ = true;
    const std::string count =
        strprintf("%zu of %zu calls; click one for its ranks", resort_ ? all.size() : shown_.size(), all.size());
    same_line_if_fits(text_width(count));
    dim_text(count);
    same_line_if_fits(text_width("copy as CSV") + 2 * ImGui::GetStyle().FramePadding.x);
    if (ImGui::SmallButton("copy as CSV")) copy_rows(workspace.store(), all);
    const CommCall* chosen = nullptr;
    for (const CommCall& call : all)
      if (workspace.cursor.event && has_side(call, *workspace.cursor.event)) chosen = &call;
    const float below =
        chosen == nullptr
            ? 0
            : std::min(ImGui::GetContentRegionAvail().y * 0.45f,
                       ImGui::GetTextLineHeightWithSpacing() * (3.5f + static_cast<float>(chosen->sides.size())));
    if (ImGui::BeginChild("table", {0, ImGui::GetContentRegionAvail().y - below})) table(workspace, all);
    ImGui::EndChild();
    if (chosen != nullptr) sides(workspace, *chosen);
    ImGui::EndTabItem();
  }
  if (ImGui::BeginTabItem("Do members agree?")) {
    mismatches(workspace);
    ImGui::EndTabItem();
  }
  ImGui::EndTabBar();
}

void CommPanel::copy_rows(const TraceStore& store, const std::vector<CommCall>& all) const {
  std::string out;
  const auto cell = [&out](std::string_view words, int column) {
    out += column == 0 ? "" : ",";
    out += words;
  };
  for (int c = 0; c < kCommColumns; ++c) cell(name(static_cast<CommColumn>(c)), c);
  out += "\n";
  for (const uint32_t i : shown_) {
    for (int c = 0; c < kCommColumns; ++c) cell(cell_text(store, all[i], static_cast<CommColumn>(c)), c);
    out += "\n";
  }
  ImGui::SetClipboardText(out.c_str());
}

void CommPanel::order_rows(const std::vector<CommCall>& all) {
  sort_calls(all, column_, ascending_, sorted_);
  shown_.clear();
  for (const uint32_t i : sorted_)
    if (fits(all[i], filter_)) shown_.push_back(i);
  filtered_by_ = filter_;
  resort_ = false;
}

// Scrolls once for each call that was selected in another panel.
void CommPanel::scroll_to_chosen(const Workspace& workspace, const std::vector<CommCall>& all) {
  if (workspace.cursor.event == scrolled_to_) return;
  scrolled_to_ = workspace.cursor.event;
  if (!scrolled_to_) return;
  for (size_t i = 0; i < shown_.size(); ++i) {
    if (!has_side(all[shown_[i]], *scrolled_to_)) continue;
    const float line = ImGui::GetTextLineHeight() + 2 * ImGui::GetStyle().CellPadding.y;
    const float row = line * static_cast<float>(i), seen = ImGui::GetScrollY(), height = ImGui::GetWindowHeight();
    if (row < seen || row > seen + height - 3 * line) ImGui::SetScrollY(std::max(0.f, row - height / 3));
    return;
  }
}

void CommPanel::table(Workspace& workspace, const std::vector<CommCall>& all) {
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_Sortable | ImGuiTableFlags_RowBg | ImGuiTableFlags_ScrollY |
                                     ImGuiTableFlags_ScrollX | ImGuiTableFlags_Resizable | ImGuiTableFlags_Hideable |
                                     ImGuiTableFlags_SizingFixedFit | ImGuiTableFlags_BordersInnerV;
  if (!ImGui::BeginTable("calls", kCommColumns, kFlags)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  for (int i = 0; i < kCommColumns; ++i) ImGui::TableSetupColumn(std::string(name(static_cast<CommColumn>(i))).c_str());
  ImGui::TableHeadersRow();
  if (ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
      specs != nullptr && specs->SpecsDirty && specs->SpecsCount > 0) {
    column_ = static_cast<CommColumn>(specs->Specs[0].ColumnIndex);
    ascending_ = specs->Specs[0].SortDirection == ImGuiSortDirection_Ascending;
    resort_ = true;
    specs->SpecsDirty = false;
  }
  if (resort_) order_rows(all);
  scroll_to_chosen(workspace, all);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(shown_.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const CommCall& call = all[shown_[static_cast<size_t>(i)]];
      ImGui::TableNextRow();
      ImGui::PushID(i);
      for (int c = 0; c < kCommColumns; ++c) {
        if (!ImGui::TableSetColumnIndex(c)) continue;
        const auto column = static_cast<CommColumn>(c);
        const std::string words = cell_text(workspace.store(), call, column);
        if (c == 0) {
          const bool chosen = workspace.cursor.event && has_side(call, *workspace.cursor.event);
          if (ImGui::Selectable(words.c_str(), chosen, ImGuiSelectableFlags_SpanAllColumns) && !call.sides.empty()) {
            workspace.show_event(call.sides[0].event);
            scrolled_to_ = workspace.cursor.event;
          }
        } else if (is_number(column)) {
          right_text(words);
        } else {
          text(words);
        }
      }
      ImGui::PopID();
    }
  }
  ImGui::EndTable();
}

void CommPanel::sides(Workspace& workspace, const CommCall& call) {
  const TraceStore& store = workspace.store();
  text(std::string(name(call.verb)) + " " + std::string(name(call.axis)) +
       strprintf(" #%lld", static_cast<long long>(call.sequence)));
  ImGui::SameLine();
  dim_text("ranks " + join(std::span<const int>(call.group), " ") + ", skew " + format_time(store, call.skew_ns) +
           (call.last_rank >= 0 ? strprintf(", rank %d was last", call.last_rank) : ""));
  if (!call.missing.empty()) colored_text(theme::kBad, "missing: " + join(std::span<const int>(call.missing), " "));
  if (!ImGui::BeginTable("sides", 7, ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingFixedFit)) return;
  for (const char* heading : {"rank", "posted", "matched", "first byte", "done", "exposed", "waited for peers"})
    ImGui::TableSetupColumn(heading);
  ImGui::TableHeadersRow();
  for (const CommSide& side : call.sides) {
    ImGui::TableNextColumn();
    colored_text(side.global_rank == call.last_rank ? theme::kCursor : theme::kText,
                 strprintf("r%d", side.global_rank));
    for (const int64_t time : {side.posted_ns, side.matched_ns, side.first_byte_ns, side.done_ns}) {
      ImGui::TableNextColumn();
      right_text(moment(store, time));
    }
    for (const int64_t length : {side.exposed_ns, side.peer_wait_ns}) {
      ImGui::TableNextColumn();
      right_text(format_time(store, length));
    }
  }
  ImGui::EndTable();
}

void CommPanel::mismatches(Workspace& workspace) {
  const TraceStore& store = workspace.store();
  const auto& views = mismatches_.get(workspace.content(store.whole()), [&] { return mismatch_views(store); });
  const bool sound =
      std::all_of(views.begin(), views.end(), [](const MismatchView& view) { return view.divergence < 0; });
  if (sound) colored_text(theme::kGood, "every member of every group made the same calls in the same order");
  if (!ImGui::BeginChild("groups", {0, 0}, 0, ImGuiWindowFlags_HorizontalScrollbar)) return ImGui::EndChild();
  for (const MismatchView& view : views) {
    text(std::string(name(view.axis)) + " [" + join(std::span<const int>(view.group), " ") + "]");
    ImGui::SameLine();
    dim_text(strprintf("from call %lld", static_cast<long long>(view.first_sequence)));
    if (!view.verdict.empty()) colored_text(theme::kBad, view.verdict);
    for (size_t member = 0; member < view.cells.size(); ++member) {
      const int rank = member < view.group.size() ? view.group[member] : -1;
      dim_text(strprintf("r%d", rank));
      ImGui::SameLine(scaled(44));
      for (size_t i = 0; i < view.cells[member].size(); ++i) {
        if (i > 0) ImGui::SameLine(0, 2);
        call_cell(view, member, i);
      }
    }
    ImGui::Spacing();
  }
  ImGui::EndChild();
}

}  // namespace ranklab::viz
