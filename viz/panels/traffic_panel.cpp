#include "viz/panels/traffic_panel.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

constexpr size_t kNumbersUpTo = 16;    // up to so many ranks, cells show numbers
constexpr float kSmallest = 0.7f;      // smallest size of numbers next to narrow cells, relative to the font's
constexpr size_t kFollowed = 400'000;  // events; with more, no sums up to the cursor in every frame
constexpr size_t kStepsShown = 64;     // of a long run, because its sums take long

// A combo box with `all` and the values that occur in the trace.
template <typename T>
void choose(const char* id, const char* all, const std::vector<T>& values, std::optional<T>& chosen) {
  if (!ImGui::BeginCombo(id, chosen ? std::string(name(*chosen)).c_str() : all)) return;
  if (ImGui::Selectable(all, !chosen)) chosen.reset();
  for (const T value : values) {
    if (ImGui::Selectable(std::string(name(value)).c_str(), chosen == value)) chosen = value;
  }
  ImGui::EndCombo();
}

}  // namespace

std::string TrafficPanel::nothing_to_show(Workspace& workspace) {
  if (workspace.store().empty()) return workspace.why_empty();
  if (const std::string_view why = workspace.why_phases_only(); !why.empty()) return std::string(why);
  if (matrix(workspace).axes.empty() && !follows_cursor(workspace))
    return "Nothing was sent in this part of the trace.\n\n./ranklab train --tp 2 --pp 2 --train-iters 3   sends over "
           "three axes";
  return {};
}

TrafficFilter TrafficPanel::filter(const Workspace& workspace) const {
  TrafficFilter out = filter_;
  out.gpus_per_node = workspace.store().gpus_per_node();
  return out;
}

TrafficPanel::Key TrafficPanel::key(Workspace& workspace, const Window& window) const {
  return {workspace.content(window), filter(workspace)};
}
TrafficPanel::Key TrafficPanel::key(Workspace& workspace) const { return key(workspace, shown(workspace)); }

bool TrafficPanel::follows_cursor(Workspace& workspace) const {
  const bool wanted = until_cursor_ || workspace.playback.state == PlayState::kPlaying;
  return wanted && workspace.store().num_events() <= kFollowed && workspace.store().step_window(workspace.step());
}

Window TrafficPanel::shown(Workspace& workspace) const {
  if (!follows_cursor(workspace)) return workspace.window();
  const int64_t begin = workspace.store().step_window(workspace.step())->range.begin_ns;
  // A call that ends exactly where the step begins belongs to the step before.
  return {{begin + 1, std::max(workspace.cursor.time_ns, begin + 1)}, -1};
}

const TrafficMatrix& TrafficPanel::matrix(Workspace& workspace) {
  const Key now = key(workspace);
  return matrix_.get(now, [&] { return traffic_matrix(workspace.store(), shown(workspace), now.second); });
}

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
  return heat_colour(static_cast<float>(std::clamp(share, 0.06, 1.0)));
}

// With experts, users look for the dispatch of tokens; with context parallelism, for keys and values. A ring of
// gradients has more bytes and would hide these.
void TrafficPanel::begin_with_a_purpose(Workspace& workspace) {
  if (opened_ == workspace.loaded() || !workspace.has_whole_step()) return;
  opened_ = workspace.loaded();
  filter_.purpose.reset();
  const std::vector<Purpose>& purposes = matrix(workspace).purposes;
  for (const Purpose purpose : {Purpose::kDispatch, Purpose::kKeyValue, Purpose::kHeads}) {
    if (std::find(purposes.begin(), purposes.end(), purpose) == purposes.end()) continue;
    filter_.purpose = purpose;
    return;
  }
}

void TrafficPanel::draw(Workspace& workspace) {
  begin_with_a_purpose(workspace);
  const TrafficMatrix& now = matrix(workspace);
  controls(workspace, now);
  const bool strip = workspace.store().steps().size() > 1;
  const float below = strip ? scaled(96) : 0, space = ImGui::GetContentRegionAvail().y;
  const float others = below + (chosen_ ? std::min(space * 0.3f, scaled(150)) : 0);
  grid(workspace, now, grid_height(space, others));
  if (chosen_) chosen_calls(workspace);
  if (strip) steps(workspace);
}

float TrafficPanel::grid_height(float space, float others) { return std::max(space - others, scaled(140)); }

void TrafficPanel::controls(Workspace& workspace, const TrafficMatrix& matrix) {
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
  choose("##axis", "all axes", matrix.axes, filter_.axis);
  if (matrix.purposes.size() > 1 || filter_.purpose) {
    same_line_if_fits(scaled(124));
    ImGui::SetNextItemWidth(scaled(124));
    choose("##purpose", "all purposes", matrix.purposes, filter_.purpose);
    tooltip(
        "dispatch: tokens to their experts; combine: back to their ranks; grad: the gradients of both\n"
        "kv: keys and values to context-parallel ranks; dkv: their gradients; heads: heads for positions, and back");
  }
  nodes(workspace);
  same_line_if_fits(scaled(54));
  ImGui::Checkbox("log", &logarithmic_);
  same_line_if_fits(scaled(124));
  ImGui::Checkbox("up to the cursor", &until_cursor_);
  tooltip("of the cursor's step what was sent by then, framed what is on its way; always while the trace plays");
  const TrafficCell total = matrix.total();
  const std::string sum = words(total);
  const std::string line =
      strprintf("%s in %lld messages", sum.empty() ? "nothing" : sum.c_str(), static_cast<long long>(total.messages));
  same_line_if_fits(ImGui::CalcTextSize(line.c_str()).x);
  dim_text(line);
}

void TrafficPanel::nodes(Workspace& workspace) {
  const int gpus = workspace.store().gpus_per_node();
  same_line_if_fits(scaled(110));
  ImGui::SetNextItemWidth(scaled(110));
  const std::string now(name(filter_.nodes));
  if (ImGui::BeginCombo("##nodes", now.c_str())) {
    for (const NodeScope scope : {NodeScope::kAll, NodeScope::kIntraNode, NodeScope::kInterNode}) {
      ImGui::BeginDisabled(gpus <= 0 && scope != NodeScope::kAll);
      if (ImGui::Selectable(std::string(name(scope)).c_str(), filter_.nodes == scope)) filter_.nodes = scope;
      ImGui::EndDisabled();
    }
    int edited = std::max(gpus, 1);
    label("GPUs a node");
    ImGui::SetNextItemWidth(scaled(90));
    if (ImGui::InputInt("##gpus", &edited)) workspace.store().set_gpus_per_node(std::clamp(edited, 1, 1 << 16));
    ImGui::EndCombo();
  }
  tooltip(gpus > 0 ? "which links: inside a node, or between nodes"
                   : "the trace does not say how many GPUs a node has");
}

void TrafficPanel::grid(Workspace& workspace, const TrafficMatrix& matrix, float height) {
  const size_t n = matrix.size();
  if (n == 0) return;
  const float label = scaled(34), sum = scaled(78);
  const ImVec2 space(ImGui::GetContentRegionAvail().x - label - sum,
                     height - 2 * ImGui::GetTextLineHeightWithSpacing() - scaled(8));
  const ImVec2 size(std::floor(std::clamp(space.x / static_cast<float>(n), scaled(4), scaled(110))),
                    std::floor(std::clamp(space.y / static_cast<float>(n), scaled(4), scaled(48))));
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  const ImVec2 origin(corner.x + label, corner.y + ImGui::GetTextLineHeightWithSpacing());
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  double largest = 0;
  for (const TrafficCell& cell : matrix.cells) largest = std::max(largest, value(cell));
  const TrafficMatrix* moving = nullptr;
  if (follows_cursor(workspace)) {
    const Window step = *workspace.store().step_window(workspace.step());
    const Key of_step = key(workspace, step);
    const auto& whole =
        whole_step_.get(of_step, [&] { return traffic_matrix(workspace.store(), step, of_step.second); });
    for (const TrafficCell& cell : whole.cells) largest = std::max(largest, value(cell));
    const Window now{{workspace.cursor.time_ns, workspace.cursor.time_ns}, -1};
    const Key of_now = key(workspace, now);
    moving = &moving_.get(of_now, [&] { return traffic_matrix(workspace.store(), now, of_now.second); });
  }
  draw.AddText({corner.x, corner.y}, theme::kFaint, "to");
  // If cells are narrow, not all of them have their rank next to them.
  const ImVec2 words(text_width(strprintf("%d", matrix.ranks.back())) + 4, ImGui::GetFontSize());
  RoomForLabels across(words.x), down(words.y);
  for (size_t i = 0; i < n; ++i) {
    const std::string rank = strprintf("%d", matrix.ranks[i]);
    const float x = origin.x + size.x * (static_cast<float>(i) + 0.5f),
                y = origin.y + size.y * (static_cast<float>(i) + 0.5f);
    if (across.take(x)) centred_text(draw, {x - words.x / 2, corner.y}, words, theme::kDim, rank);
    if (down.take(y)) centred_text(draw, {corner.x, y - words.y / 2}, {label, words.y}, theme::kDim, "r" + rank);
  }
  for (size_t from = 0; from < n; ++from) {
    for (size_t to = 0; to < n; ++to) {
      cell(workspace, matrix, from, to,
           {origin.x + size.x * static_cast<float>(to), origin.y + size.y * static_cast<float>(from)}, size, largest);
      if (moving == nullptr || moving->at(from, to).messages == 0) continue;
      const ImVec2 at(origin.x + size.x * static_cast<float>(to), origin.y + size.y * static_cast<float>(from));
      draw.AddRect(at, {at.x + size.x - 1, at.y + size.y - 1}, theme::kCursor, 0, scaled(2));
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
    centred_text(draw, at, size, bright > 0.72 ? IM_COL32(20, 22, 26, 255) : IM_COL32(222, 227, 234, 255), words(here),
                 0.92f);
  const std::pair<int, int> pair(matrix.ranks[from], matrix.ranks[to]);
  if (chosen_ == pair) draw.AddRect(at, end, theme::kOutline, 0, scaled(2));
  if (clicked) chosen_ = chosen_ == pair ? std::nullopt : std::optional(pair);
  if (!hovered) return;
  draw.AddRect(at, end, theme::kCursor);
  ImGui::BeginTooltip();
  ImGui::Text("rank %d to rank %d", pair.first, pair.second);
  if (from == to && matrix.kept_bytes[from] > 0)
    dim_text("all-to-alls left " + human_bytes(static_cast<double>(matrix.kept_bytes[from])) + " where it was");
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
  if (mode_ == TrafficMode::kBandwidth) return;  // bandwidths of links do not add up
  draw.AddText({right + scaled(8), origin.y - ImGui::GetTextLineHeightWithSpacing()}, theme::kFaint, "sent");
  const ImVec2 got(origin.x - scaled(34), bottom + scaled(2));
  draw.AddText(got, theme::kFaint, "got");
  std::vector<std::string> rows, columns;
  float wide = 0;
  for (size_t i = 0; i < matrix.size(); ++i) {
    rows.push_back(words(matrix.row_sum(i)));
    columns.push_back(words(matrix.column_sum(i)));
    wide = std::max(wide, text_width(columns.back()));
  }
  // If cells are narrow, not all of them have their sums next to them, as with ranks.
  const float font = ImGui::GetFontSize(), high = std::clamp(size.y, font * kSmallest, font);
  const ImVec2 room(std::max(size.x, (wide + scaled(6)) * kSmallest), font + 2);
  RoomForLabels across(room.x), down(high);
  const float from = got.x + text_width("got") + room.x / 2;
  for (size_t i = 0; i < matrix.size(); ++i) {
    const float x = origin.x + size.x * (static_cast<float>(i) + 0.5f),
                y = origin.y + size.y * (static_cast<float>(i) + 0.5f);
    if (down.take(y))
      draw.AddText(ImGui::GetFont(), high, {right + scaled(8), std::floor(y - high / 2)}, theme::kText,
                   rows[i].c_str());
    if (x >= from && across.take(x)) centred_text(draw, {x - room.x / 2, got.y}, room, theme::kText, columns[i], 0.92f);
  }
}

void TrafficPanel::steps(Workspace& workspace) {
  const TraceStore& store = workspace.store();
  const TrafficFilter wanted = filter(workspace);
  const size_t first = first_of_part(store, workspace.step(), kStepsShown);
  const auto& all = steps_.get({{workspace.content(store.whole()), wanted}, first},
                               [&] { return traffic_by_step(store, first, kStepsShown, wanted); });
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
    if (now && step_in_view_ != step.step) ImGui::SetScrollHereX();
    if (now) step_in_view_ = step.step;
    ImGui::GetWindowDrawList()->AddRect(at, {at.x + side, at.y + side}, now ? theme::kCursor : theme::kLine);
    colored_text(now ? theme::kText : theme::kDim, strprintf("step %d", step.step));
    ImGui::EndGroup();
    ImGui::SameLine();
  }
  ImGui::EndChild();
}

void TrafficPanel::chosen_calls(Workspace& workspace) {
  const TraceStore& store = workspace.store();
  const auto& found = calls_.get({key(workspace), *chosen_}, [&] {
    return calls_between(store, shown(workspace), chosen_->first, chosen_->second, filter(workspace));
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
