#include "viz/panels/traffic_panel.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "viz/model/time_text.h"
#include "viz/panels/theme.h"
#include "viz/panels/widgets.h"

namespace ranklab::viz {
namespace {

constexpr size_t kNumbersUpTo = 16;  // ranks

void centred(ImDrawList& draw, ImVec2 from, ImVec2 size, ImU32 color, const std::string& words, float share = 1) {
  float height = ImGui::GetFontSize() * share;
  float width = ImGui::GetFont()->CalcTextSizeA(height, FLT_MAX, 0, words.c_str()).x;
  if (width > size.x - 4) {
    height = std::max(height * (size.x - 4) / width, ImGui::GetFontSize() * 0.55f);
    width = ImGui::GetFont()->CalcTextSizeA(height, FLT_MAX, 0, words.c_str()).x;
  }
  if (width > size.x || height > size.y) return;
  draw.AddText(ImGui::GetFont(), height,
               {std::floor(from.x + (size.x - width) / 2), std::floor(from.y + (size.y - height) / 2)}, color,
               words.c_str());
}

// Dark blue over teal to yellow: bright is much, and its grey value rises with it.
ImU32 heat(float t) {
  const ImU32 low = IM_COL32(27, 38, 56, 255), middle = IM_COL32(33, 122, 138, 255), high = IM_COL32(246, 214, 96, 255);
  return t < 0.5f ? blend(low, middle, t * 2) : blend(middle, high, t * 2 - 1);
}

}  // namespace

std::string TrafficPanel::nothing_to_show(Workspace& workspace) {
  if (workspace.store().empty()) return "No trace is open: ./ranklab viz last";
  if (matrix_.get(key(workspace), [&] { return traffic_matrix(workspace.store(), workspace.window()); }).axes.empty())
    return "Nothing was sent in this part of the trace.\n\n./ranklab train --tp 2 --pp 2 --train-iters 3   sends over "
           "three axes";
  return {};
}

TrafficPanel::Key TrafficPanel::key(Workspace& workspace) const { return {workspace.content(), axis_}; }

double TrafficPanel::value(const TrafficCell& cell) const {
  switch (mode_) {
    case TrafficMode::kBytes:
      return static_cast<double>(cell.of(layer_));
    case TrafficMode::kMessages:
      return static_cast<double>(cell.messages);
    case TrafficMode::kTime:
      return static_cast<double>(cell.time_ns);
    case TrafficMode::kBandwidth:
      break;
  }
  return cell.gb_per_s(layer_);
}

std::string TrafficPanel::words(const TrafficCell& cell) const {
  const double number = value(cell);
  if (number == 0) return {};
  switch (mode_) {
    case TrafficMode::kBytes:
      return human_bytes(number);
    case TrafficMode::kMessages:
      return human_count(number);
    case TrafficMode::kTime:
      return human_ns(number);
    case TrafficMode::kBandwidth:
      break;
  }
  return strprintf("%.1f GB/s", number);
}

ImU32 TrafficPanel::shade(double number, double largest) const {
  if (number <= 0 || largest <= 0) return theme::kField;
  const double share = logarithmic_ ? 1 + std::log10(number / largest) / 4 : number / largest;
  return heat(static_cast<float>(std::clamp(share, 0.06, 1.0)));
}

void TrafficPanel::draw(Workspace& workspace) {
  const std::optional<Axis> axis = axis_ < 0 ? std::nullopt : std::optional(static_cast<Axis>(axis_));
  const TrafficMatrix& matrix =
      matrix_.get(key(workspace), [&] { return traffic_matrix(workspace.store(), workspace.window(), axis); });
  controls(matrix);
  const bool strip = workspace.store().steps().size() > 1;
  const float below = strip ? scaled(96) : 0, space = ImGui::GetContentRegionAvail().y;
  grid(workspace, matrix, space - below - (chosen_ ? std::min(space * 0.3f, scaled(150)) : 0));
  if (chosen_) chosen_calls(workspace);
  if (strip) steps(workspace);
}

void TrafficPanel::controls(const TrafficMatrix& matrix) {
  ImGui::SetNextItemWidth(scaled(104));
  int mode = static_cast<int>(mode_);
  if (ImGui::Combo("##mode", &mode, "bytes\0messages\0time\0bandwidth\0")) mode_ = static_cast<TrafficMode>(mode);
  ImGui::SameLine();
  ImGui::SetNextItemWidth(scaled(104));
  int layer = static_cast<int>(layer_);
  if (ImGui::Combo("##layer", &layer, "logical\0algorithm\0wire\0")) layer_ = static_cast<TrafficLayer>(layer);
  tooltip(
      "logical: what the call means, without an algorithm\nalgorithm: what the modelled algorithm sends (ring)\n"
      "wire: what the backend moved out of the rank");
  ImGui::SameLine();
  ImGui::SetNextItemWidth(scaled(84));
  const std::string now = axis_ < 0 ? "all axes" : std::string(name(static_cast<Axis>(axis_)));
  if (ImGui::BeginCombo("##axis", now.c_str())) {
    if (ImGui::Selectable("all axes", axis_ < 0)) axis_ = -1;
    for (const Axis axis : matrix.axes) {
      if (ImGui::Selectable(std::string(name(axis)).c_str(), axis_ == static_cast<int>(axis)))
        axis_ = static_cast<int>(axis);
    }
    ImGui::EndCombo();
  }
  ImGui::SameLine();
  ImGui::Checkbox("log", &logarithmic_);
  ImGui::SameLine(0, scaled(12));
  const TrafficCell total = matrix.total();
  const std::string sum = words(total);
  dim_text(
      strprintf("%s in %lld messages", sum.empty() ? "nothing" : sum.c_str(), static_cast<long long>(total.messages)));
}

void TrafficPanel::grid(Workspace& workspace, const TrafficMatrix& matrix, float height) {
  const size_t n = matrix.size();
  if (n == 0) return;
  const float label = scaled(34), sum = scaled(78);
  const ImVec2 space(ImGui::GetContentRegionAvail().x - label - sum,
                     height - 2 * ImGui::GetTextLineHeightWithSpacing() - scaled(8));
  const ImVec2 size(std::floor(std::clamp(space.x / static_cast<float>(n), scaled(6), scaled(110))),
                    std::floor(std::clamp(space.y / static_cast<float>(n), scaled(6), scaled(48))));
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  const ImVec2 origin(corner.x + label, corner.y + ImGui::GetTextLineHeightWithSpacing());
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  double largest = 0;
  for (const TrafficCell& cell : matrix.cells) largest = std::max(largest, value(cell));
  draw.AddText({corner.x, corner.y}, theme::kFaint, "to");
  for (size_t i = 0; i < n; ++i) {
    const std::string rank = strprintf("%d", matrix.ranks[i]);
    centred(draw, {origin.x + size.x * static_cast<float>(i), corner.y}, {size.x, ImGui::GetFontSize()}, theme::kDim,
            rank);
    centred(draw, {corner.x, origin.y + size.y * static_cast<float>(i)}, {label, size.y}, theme::kDim, "r" + rank);
  }
  for (size_t from = 0; from < n; ++from) {
    for (size_t to = 0; to < n; ++to) {
      cell(workspace, matrix, from, to,
           {origin.x + size.x * static_cast<float>(to), origin.y + size.y * static_cast<float>(from)}, size, largest);
    }
  }
  sums(matrix, origin, size);
  ImGui::SetCursorScreenPos(
      {corner.x, origin.y + size.y * static_cast<float>(n) + ImGui::GetTextLineHeightWithSpacing() + scaled(4)});
  ImGui::Dummy({0, 0});
}

void TrafficPanel::cell(Workspace& workspace, const TrafficMatrix& matrix, size_t from, size_t to, ImVec2 at,
                        ImVec2 size, double largest) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const TrafficCell& here = matrix.at(from, to);
  const ImVec2 end(at.x + size.x - 1, at.y + size.y - 1);
  ImGui::SetCursorScreenPos(at);
  ImGui::PushID(static_cast<int>(from * matrix.size() + to));
  const bool clicked = ImGui::InvisibleButton("cell", size);
  const bool hovered = ImGui::IsItemHovered();
  ImGui::PopID();
  draw.AddRectFilled(at, end, shade(value(here), largest));
  if (from == to) hatch(draw, at, end, theme::kLine, scaled(6));
  const double bright = largest > 0 ? value(here) / largest : 0;
  if (matrix.size() <= kNumbersUpTo)
    centred(draw, at, size, bright > 0.72 ? IM_COL32(20, 22, 26, 255) : theme::kText, words(here), 0.92f);
  const std::pair<int, int> pair(matrix.ranks[from], matrix.ranks[to]);
  if (chosen_ == pair) draw.AddRect(at, end, IM_COL32_WHITE, 0, scaled(2));
  if (clicked) chosen_ = chosen_ == pair ? std::nullopt : std::optional(pair);
  if (!hovered) return;
  draw.AddRect(at, end, theme::kCursor);
  ImGui::BeginTooltip();
  ImGui::Text("rank %d to rank %d", pair.first, pair.second);
  for (const TrafficLayer layer : {TrafficLayer::kLogical, TrafficLayer::kAlgorithm, TrafficLayer::kWire})
    dim_text(strprintf("%s: %s, %.1f GB/s", std::string(name(layer)).c_str(),
                       human_bytes(static_cast<double>(here.of(layer))).c_str(), here.gb_per_s(layer)));
  dim_text(strprintf("%lld messages, %s on the link", static_cast<long long>(here.messages),
                     format_time(workspace.store(), here.time_ns).c_str()));
  ImGui::EndTooltip();
}

void TrafficPanel::sums(const TrafficMatrix& matrix, ImVec2 origin, ImVec2 size) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const auto n = static_cast<float>(matrix.size());
  const float right = origin.x + size.x * n, bottom = origin.y + size.y * n;
  draw.AddText({right + scaled(8), origin.y - ImGui::GetTextLineHeightWithSpacing()}, theme::kFaint, "sent");
  draw.AddText({origin.x - scaled(34), bottom + scaled(2)}, theme::kFaint, "got");
  if (matrix.size() > kNumbersUpTo * 2 || mode_ == TrafficMode::kBandwidth) return;
  for (size_t i = 0; i < matrix.size(); ++i) {
    const auto at = static_cast<float>(i);
    const std::string row = words(matrix.row_sum(i)), column = words(matrix.column_sum(i));
    draw.AddText({right + scaled(8), std::floor(origin.y + size.y * at + (size.y - ImGui::GetFontSize()) / 2)},
                 theme::kText, row.c_str());
    centred(draw, {origin.x + size.x * at, bottom + scaled(2)}, {size.x, ImGui::GetFontSize() + 2}, theme::kText,
            column, 0.92f);
  }
}

void TrafficPanel::steps(Workspace& workspace) {
  const std::optional<Axis> axis = axis_ < 0 ? std::nullopt : std::optional(static_cast<Axis>(axis_));
  const TraceStore& store = workspace.store();
  const auto& all = steps_.get({workspace.content(store.whole()), axis_}, [&] { return traffic_by_step(store, axis); });
  if (!ImGui::BeginChild("steps", {0, 0}, 0, ImGuiWindowFlags_HorizontalScrollbar)) return ImGui::EndChild();
  double largest = 0;
  for (const StepTraffic& step : all)
    for (const TrafficCell& cell : step.matrix.cells) largest = std::max(largest, value(cell));
  const float side = scaled(56);
  for (const StepTraffic& step : all) {
    ImGui::BeginGroup();
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::PushID(step.step);
    if (ImGui::InvisibleButton("step", {side, side})) {
      if (const auto window = store.step_window(step.step)) workspace.set_time(window->range.begin_ns);
      workspace.scope = Scope::kStep;
    }
    ImGui::PopID();
    const size_t n = std::max<size_t>(step.matrix.size(), 1);
    const float each = side / static_cast<float>(n);
    for (size_t i = 0; i < step.matrix.cells.size(); ++i) {
      const ImVec2 from(at.x + each * static_cast<float>(i % n), at.y + each * static_cast<float>(i / n));
      ImGui::GetWindowDrawList()->AddRectFilled(from, {from.x + each, from.y + each},
                                                shade(value(step.matrix.cells[i]), largest));
    }
    const bool now = workspace.step() == step.step;
    ImGui::GetWindowDrawList()->AddRect(at, {at.x + side, at.y + side}, now ? theme::kCursor : theme::kLine);
    colored_text(now ? theme::kText : theme::kDim, strprintf("step %d", step.step));
    ImGui::EndGroup();
    ImGui::SameLine();
  }
  ImGui::EndChild();
}

void TrafficPanel::chosen_calls(Workspace& workspace) {
  const TraceStore& store = workspace.store();
  const std::optional<Axis> axis = axis_ < 0 ? std::nullopt : std::optional(static_cast<Axis>(axis_));
  const auto& found = calls_.get({key(workspace), *chosen_}, [&] {
    return calls_between(store, workspace.window(), chosen_->first, chosen_->second, axis);
  });
  ImGui::Text("%zu calls from rank %d to rank %d", found.size(), chosen_->first, chosen_->second);
  if (!ImGui::BeginChild("calls", {0, std::max(scaled(60), ImGui::GetContentRegionAvail().y - scaled(100))}))
    return ImGui::EndChild();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(found.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const EventRef ref = found[static_cast<size_t>(i)];
      const std::string line = strprintf("%s   %s   at %s##%d", store.text(ref).c_str(),
                                         human_bytes(static_cast<double>(store.event(ref).logical_bytes)).c_str(),
                                         format_time(store, store.begin_ns(ref) - store.range().begin_ns).c_str(), i);
      if (ImGui::Selectable(line.c_str())) workspace.show_event(ref);
    }
  }
  ImGui::EndChild();
}

}  // namespace ranklab::viz
