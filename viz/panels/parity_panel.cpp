#include "viz/panels/parity_panel.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/base/text.h"
#include "viz/model/parity/parity_lines.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

Ground ground() { return theme_kind() == ThemeKind::kLight ? Ground::kLight : Ground::kDark; }

// The background for which the colours were chosen.
ImU32 ground_colour() { return ground() == Ground::kLight ? IM_COL32_WHITE : IM_COL32(0x11, 0x13, 0x17, 255); }

// A fact with its name, which is to the left of the words if there is enough space, else above them.
void fact(const char* what, const std::string& words) {
  dim_text(what);
  const float beside = scaled(104);
  if (ImGui::GetContentRegionAvail().x > scaled(220)) ImGui::SameLine(std::max(beside, text_width(what) + scaled(8)));
  ImGui::PushTextWrapPos(0);
  text(words);
  ImGui::PopTextWrapPos();
}

}  // namespace

std::string ParityPanel::nothing_to_show(Workspace& workspace) {
  if (workspace.parity() != nullptr) return {};
  return "What ranklab parity has found is shown here, tensor by tensor.\n\n"
         "./ranklab parity --tp 2 --pp 2 --out parity.json\n./ranklab viz --parity parity.json";
}

// For a new map, opens the layer of the first wrong tensor and selects that tensor.
void ParityPanel::take(const std::shared_ptr<const ParityMap>& shown) {
  if (map_ == shown) return;
  map_ = shown;
  const ParityMap& map = *map_;
  units_ = parity_units(map);
  first_wrong_ = map.first_wrong();
  open_.assign(units_.size(), false);
  chosen_.reset();
  only_wrong_ = false;
  if (first_wrong_) {
    for (size_t i = 0; i < units_.size(); ++i)
      open_[i] = units_[i].begin <= *first_wrong_ && *first_wrong_ < units_[i].end;
    chosen_ = furthest_place(map, *first_wrong_, *first_wrong_ + 1);
    show_first_ = true;
  }
  list_lines(map);
}

void ParityPanel::list_lines(const ParityMap& map) {
  lines_.clear();
  for (size_t i = 0; i < units_.size(); ++i) {
    const ParityUnit& unit = units_[i];
    if (unit.begin == 0 || !same_phase(map.rows[unit.begin - 1], map.rows[unit.begin]))
      lines_.push_back({Line::Kind::kPhase, unit.begin, unit.end});
    if (only_wrong_ && count_wrong(map, unit.begin, unit.end) == 0) continue;
    const bool one = unit.begin + 1 == unit.end;
    if (!one) lines_.push_back({Line::Kind::kUnit, unit.begin, unit.end, i});
    if (!one && !open_[i]) continue;
    for (size_t row = unit.begin; row < unit.end; ++row)
      if (!only_wrong_ || map.rows[row].wrong()) lines_.push_back({Line::Kind::kTensor, row, row + 1, i});
  }
  // A phase without lines gets no heading.
  std::vector<Line> some;
  for (size_t i = 0; i < lines_.size(); ++i) {
    const bool last = i + 1 == lines_.size() || lines_[i + 1].kind == Line::Kind::kPhase;
    if (lines_[i].kind != Line::Kind::kPhase || !last) some.push_back(lines_[i]);
  }
  lines_ = std::move(some);
}

void ParityPanel::draw(Workspace& workspace) {
  const ParityMap& map = *workspace.parity();
  take(workspace.parity());
  controls(map);
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const bool beside = space.x > scaled(760);
  const float words = beside ? std::clamp(space.x * 0.3f, scaled(260), scaled(420)) : space.x;
  const float below = ImGui::GetTextLineHeightWithSpacing() * 9;
  const ImVec2 size(beside ? space.x - words - scaled(12) : space.x,
                    beside ? space.y : std::max(space.y - below, scaled(90)));
  if (ImGui::BeginChild("map", size)) {
    heads(map);
    ImGui::PushStyleColor(ImGuiCol_ChildBg, ground_colour());
    if (ImGui::BeginChild("lines", {}, ImGuiChildFlags_None, ImGuiWindowFlags_AlwaysVerticalScrollbar)) grid(map);
    ImGui::EndChild();
    ImGui::PopStyleColor();
  }
  ImGui::EndChild();
  if (beside) ImGui::SameLine(0, scaled(12));
  if (ImGui::BeginChild("about")) about(map);
  ImGui::EndChild();
}

void ParityPanel::controls(const ParityMap& map) {
  ImGui::PushTextWrapPos(0);
  colored_text(map.same ? theme::kGood : theme::kBad, map.verdict);
  ImGui::PopTextWrapPos();
  bool changed = ImGui::Checkbox("only wrong", &only_wrong_);
  ImGui::SameLine(0, scaled(10));
  const auto set_all = [&](const char* button, bool open) {
    if (!ImGui::SmallButton(button)) return;
    open_.assign(units_.size(), open);
    changed = true;
  };
  set_all("open all", true);
  ImGui::SameLine(0, scaled(4));
  set_all("close all", false);
  if (changed) list_lines(map);
  ImGui::SameLine(0, scaled(14));
  const float side = ImGui::GetTextLineHeight();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  for (size_t level = 0; level < kParityLevels; ++level) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    draw.AddRectFilled(at, {at.x + side, at.y + side}, im_color(parity_paint(level, ground(), false).fill));
    ImGui::Dummy({side, side});
    tooltip((words_of_level(level) + " of the tolerance").c_str());
    ImGui::SameLine(0, 1);
  }
  ImGui::SameLine(0, scaled(6));
  help_marker(
      "A row is a tensor, in the order in which they depend on each other; a column is a rank. The colour is the "
      "distance of its part from the reference, over the tolerance: pale within the tolerance, darker beyond it by "
      "powers of ten, with a cross and the multiple. Empty: the rank has no part of it. The first wrong tensor has a "
      "frame; what comes after it is paler, because it may follow from it.");
}

bool ParityPanel::narrow() const { return cell_width_ < text_width("88 0e88") + scaled(4); }

void ParityPanel::heads(const ParityMap& map) {
  const float width = ImGui::GetContentRegionAvail().x - ImGui::GetStyle().ScrollbarSize;
  line_height_ = std::round(ImGui::GetTextLineHeight() + scaled(4));
  label_width_ = std::clamp(width * 0.42f, scaled(120), scaled(330));
  cell_width_ = std::clamp((width - label_width_) / static_cast<float>(std::max<size_t>(map.ranks.size(), 1)),
                           scaled(4), scaled(110));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  size_t axes = 1;  // lines of a heading: its coordinates, if there is space for them
  for (size_t rank = 0; rank < map.ranks.size(); ++rank) {
    const float x = at.x + label_width_ + cell_width_ * static_cast<float>(rank);
    const bool room = cell_width_ >= text_width("888") + scaled(2);
    if (room || rank % 8 == 0)
      centred_text(draw, {x, at.y}, {room ? cell_width_ : scaled(24), line_height_}, theme::kText,
                   std::to_string(rank));
    if (cell_width_ < text_width("dp88")) continue;
    std::istringstream in(map.ranks[rank]);
    size_t line = 1;
    for (std::string word; in >> word; ++line)
      centred_text(draw, {x, at.y + line_height_ * static_cast<float>(line)}, {cell_width_, line_height_}, theme::kDim,
                   word, 0.9f);
    axes = std::max(axes, line);
  }
  draw.AddText({at.x, at.y}, theme::kDim, "rank");
  ImGui::Dummy({width, line_height_ * static_cast<float>(axes) + scaled(2)});
}

void ParityPanel::grid(const ParityMap& map) {
  corner_ = ImGui::GetCursorScreenPos();
  const float width = label_width_ + cell_width_ * static_cast<float>(map.ranks.size());
  const ImVec2 size(width, std::max(line_height_ * static_cast<float>(lines_.size()), 1.f));
  const bool clicked = ImGui::InvisibleButton("cells", size), hovered = ImGui::IsItemHovered();
  if (show_first_) {
    for (size_t i = 0; i < lines_.size(); ++i)
      if (lines_[i].kind == Line::Kind::kTensor && lines_[i].begin == first_wrong_)
        ImGui::SetScrollY(std::max(0.f, line_height_ * (static_cast<float>(i) - 4)));
    show_first_ = false;
  }
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const auto under = static_cast<size_t>(std::max(0.f, (mouse.y - corner_.y) / line_height_));
  if (hovered && clicked && under < lines_.size()) {
    const Line line = lines_[under];  // a copy, because a click may change the lines
    click(map, line, mouse.x - corner_.x);
  }
  const float top = ImGui::GetWindowPos().y, bottom = top + ImGui::GetWindowSize().y;
  const auto first = static_cast<size_t>(std::max(0.f, (top - corner_.y) / line_height_));
  for (size_t i = first; i < lines_.size(); ++i) {
    const ImVec2 at(corner_.x, corner_.y + line_height_ * static_cast<float>(i));
    if (at.y > bottom) break;
    draw_line(map, lines_[i], at);
  }
}

void ParityPanel::draw_line(const ParityMap& map, const Line& line, ImVec2 at) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float middle = at.y + (line_height_ - ImGui::GetTextLineHeight()) / 2;
  if (line.kind == Line::Kind::kPhase) {
    draw.AddText({at.x, middle}, theme::kDim, phase_text(map.rows[line.begin]).c_str());
    return;
  }
  const bool unit = line.kind == Line::Kind::kUnit, first = !unit && line.begin == first_wrong_;
  const float arrow = line_height_ * 0.8f;
  if (unit) {
    const float half = line_height_ * 0.17f;
    const ImVec2 at_arrow(at.x + arrow / 2, at.y + line_height_ / 2);
    if (open_[line.unit])
      draw.AddTriangleFilled({at_arrow.x - half, at_arrow.y - half / 2}, {at_arrow.x + half, at_arrow.y - half / 2},
                             {at_arrow.x, at_arrow.y + half}, theme::kDim);
    else
      draw.AddTriangleFilled({at_arrow.x - half / 2, at_arrow.y - half}, {at_arrow.x + half, at_arrow.y},
                             {at_arrow.x - half / 2, at_arrow.y + half}, theme::kDim);
  }
  const std::string words =
      unit ? summary_text(map, line.begin, line.end, units_[line.unit].name) : map.rows[line.begin].text();
  const float indent = unit || units_[line.unit].begin + 1 == units_[line.unit].end ? arrow : arrow * 1.7f;
  draw.AddText({at.x + indent, middle},
               first  ? theme::kBad
               : unit ? theme::kText
                      : theme::kDim,
               elided(words, label_width_ - indent - scaled(6)).c_str());
  const std::vector<std::optional<size_t>> rows = furthest_rows(map, line.begin, line.end);
  for (size_t rank = 0; rank < rows.size(); ++rank) {
    if (!rows[rank]) continue;
    const ImVec2 cell(at.x + label_width_ + cell_width_ * static_cast<float>(rank), at.y);
    draw_cell(map, *rows[rank], rank, cell);
    const bool chosen = chosen_ && !unit && chosen_->row == line.begin && chosen_->rank == rank;
    if (chosen)
      draw.AddRect({cell.x + 1, cell.y + 1}, {cell.x + cell_width_ - 1, cell.y + line_height_ - 1}, theme::kOutline, 0,
                   scaled(2));
  }
  if (first)
    draw.AddRect({at.x, at.y},
                 {at.x + label_width_ + cell_width_ * static_cast<float>(map.ranks.size()), at.y + line_height_},
                 theme::kBad, 0, scaled(1.5f));
}

void ParityPanel::draw_cell(const ParityMap& map, size_t row, size_t rank, ImVec2 at) const {
  const ParityRow& of = map.rows[row];
  const ParityCell& cell = *of.cells[rank];
  const ParityPaint paint = parity_paint(level_of(of, cell), ground(), first_wrong_ && row > *first_wrong_);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const float gap = cell_width_ > scaled(10) ? 1.f : 0.f;
  draw.AddRectFilled({at.x + gap, at.y + gap}, {at.x + cell_width_ - gap, at.y + line_height_ - gap},
                     im_color(paint.fill));
  // Without a frame, a tensor that is exactly right would look as if the rank had no part of it.
  if (!cell.wrong && gap > 0)
    draw.AddRect({at.x + gap, at.y + gap}, {at.x + cell_width_ - gap, at.y + line_height_ - gap}, theme::kGrid);
  const std::string mark = mark_of(of, cell, narrow());
  if (!mark.empty()) centred_text(draw, at, {cell_width_, line_height_}, im_color(paint.text), mark, 0.9f);
}

void ParityPanel::click(const ParityMap& map, const Line& line, float x) {
  if (line.kind == Line::Kind::kPhase) return;
  if (x < label_width_) {
    if (line.kind == Line::Kind::kUnit) {
      open_[line.unit] = !open_[line.unit];
      list_lines(map);
    } else {
      chosen_ = furthest_place(map, line.begin, line.end);
    }
    return;
  }
  const auto rank = static_cast<size_t>((x - label_width_) / cell_width_);
  const auto rows = furthest_rows(map, line.begin, line.end);
  if (rank < rows.size() && rows[rank]) chosen_ = ParityPlace{.row = *rows[rank], .rank = rank};
}

std::optional<ImVec2> ParityPanel::middle_of(ParityPlace place) const {
  std::optional<ImVec2> found;
  for (size_t i = 0; i < lines_.size(); ++i) {
    const Line& line = lines_[i];
    if (line.kind == Line::Kind::kPhase || place.row < line.begin || place.row >= line.end) continue;
    found = ImVec2(corner_.x + label_width_ + cell_width_ * (static_cast<float>(place.rank) + 0.5f),
                   corner_.y + line_height_ * (static_cast<float>(i) + 0.5f));
  }
  return found;
}

// Describes the selected cell, and what is known about the first wrong tensor.
void ParityPanel::about(const ParityMap& map) const {
  fact("run", map.title);
  fact("reference", map.reference);
  if (chosen_) {
    const ParityRow& row = map.rows[chosen_->row];
    ImGui::SeparatorText((row.text() + ", rank " + std::to_string(chosen_->rank)).c_str());
    fact("where", phase_text(row) + (map.ranks[chosen_->rank].empty() ? "" : ", " + map.ranks[chosen_->rank]));
    const std::optional<ParityCell>& cell = row.cells[chosen_->rank];
    if (cell) {
      fact("distance", distance_text(row, *cell) + (row.allowed > 0 ? " epsilons allowed" : " allowed"));
      if (!cell->slice.empty()) fact("its part", cell->slice);
      if (!cell->place.empty())
        fact("worst element", cell->place + strprintf(": %.9g, reference %.9g", cell->got, cell->want));
    }
  }
  if (map.facts.empty()) return;
  ImGui::SeparatorText("the first wrong tensor");
  for (const ParityFact& one : map.facts) fact(one.what.c_str(), one.text);
}

}  // namespace ranklab::viz
