#include "viz/panels/expert_panel.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "viz/panels/parts/expert_plots.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

constexpr float kNumbersFrom = 26;  // width of a cell that has space for its ratio

}  // namespace

const ExpertTable& ExpertPanel::table(Workspace& workspace) {
  const Window whole = workspace.store().whole();
  return table_.get(workspace.content(whole), [&] { return expert_table(workspace.store(), whole); });
}

std::string ExpertPanel::nothing_to_show(Workspace& workspace) {
  if (workspace.store().empty()) return workspace.why_empty();
  if (table(workspace).empty())
    return "No tokens were routed: the trace is not of a mixture of experts.\n\n./ranklab train --preset "
           "deepseek_v3_tiny --ep 8   records them";
  return {};
}

// The cursor's step, or the last one before it that has data.
int ExpertPanel::shown_step(Workspace& workspace) {
  const std::vector<int>& steps = table(workspace).steps;
  if (all_steps_ || steps.empty()) return -1;
  const auto after = std::upper_bound(steps.begin(), steps.end(), workspace.step());
  return after == steps.begin() ? steps.front() : *(after - 1);
}

const LayerLoad* ExpertPanel::shown(Workspace& workspace) {
  const ExpertTable& all = table(workspace);
  if (all.empty()) return nullptr;
  if (std::find(all.layers.begin(), all.layers.end(), layer_) == all.layers.end()) layer_ = all.layers.front();
  return all.find(shown_step(workspace), layer_);
}

void ExpertPanel::draw(Workspace& workspace) {
  const ExpertTable& all = table(workspace);
  const LayerLoad* const load = shown(workspace);
  controls(workspace, all);
  if (load != nullptr) summary(all, *load);
  const ImVec2 space = ImGui::GetContentRegionAvail(), gap = ImGui::GetStyle().ItemSpacing;
  const bool beside = space.x > scaled(620);
  const ImVec2 half(beside ? std::floor((space.x - gap.x) * 0.56f) : space.x, beside ? space.y : space.y / 2);
  if (ImGui::BeginChild("load", half)) {
    const float rows = scaled(20) * static_cast<float>(all.layers.size()) + scaled(26);
    const float height = std::clamp(rows, scaled(70), half.y * 0.5f);
    heatmap(workspace, all, {half.x, height});
    if (load != nullptr) plot_load(*load, sorted_, expert_, {-1, half.y - height - gap.y});
  }
  ImGui::EndChild();
  if (beside) ImGui::SameLine();
  if (ImGui::BeginChild("steps")) {
    const auto& history =
        history_.get({workspace.content(workspace.store().whole()), layer_}, [&] { return load_history(all, layer_); });
    const bool bias = !history.bias_step.empty();
    const float height = ImGui::GetContentRegionAvail().y, each = bias ? (height - gap.y) / 2 : height;
    const int step = shown_step(workspace);
    const int first = plot_balance(history, step, {-1, each});
    const int second = bias ? plot_bias(history, step, expert_, {-1, each}) : -1;
    if (std::max(first, second) >= 0) workspace.go_to_step(std::max(first, second));
  }
  ImGui::EndChild();
}

void ExpertPanel::controls(Workspace& workspace, const ExpertTable& all) {
  ImGui::SetNextItemWidth(scaled(104));
  if (ImGui::BeginCombo("##layer", strprintf("layer %d", layer_).c_str())) {
    for (const int layer : all.layers)
      if (ImGui::Selectable(strprintf("layer %d", layer).c_str(), layer == layer_)) layer_ = layer;
    ImGui::EndCombo();
  }
  ImGui::SameLine();
  const int first = all.steps.empty() ? 0 : all.steps.front(), last = all.steps.empty() ? 0 : all.steps.back();
  int step = shown_step(workspace);
  ImGui::BeginDisabled(step < 0 || first == last);
  const std::string shown = step < 0 ? "" : strprintf("step %d", step);
  if (step_slider("##step", scaled(110), step, first, std::max(last, first + 1), shown))
    workspace.go_to_step(std::clamp(step, first, last));
  ImGui::EndDisabled();
  ImGui::SameLine();
  ImGui::Checkbox("all steps", &all_steps_);
  same_line_if_fits(scaled(110));
  ImGui::Checkbox("sort by load", &sorted_);
  same_line_if_fits(scaled(120));
  if (ImGui::Button("traffic matrix")) workspace.requests.show_panel = "traffic";
}

void ExpertPanel::summary(const ExpertTable& all, const LayerLoad& load) {
  const LoadMeasures& m = load.measures;
  ImGui::Text("max/mean %.3f", m.max_ratio);
  tooltip("the fullest expert against the mean: the others wait for it");
  ImGui::SameLine();
  dim_text(strprintf("CV %.3f   min %.0f  p50 %.0f  p95 %.0f  max %.0f, ideal %.1f", m.cv, m.min, m.p50, m.p95, m.max,
                     m.ideal));
  if (all.peers > 1) {
    same_line_if_fits(scaled(190));
    const LoadMeasures peers = measure_load(peer_tokens(load.tokens, all.peers));
    dim_text(strprintf("over %d peers %.3f", all.peers, peers.max_ratio));
    tooltip("max/mean of the tokens of the expert-parallel peers, which is what a step waits for");
  }
  if (const auto loss = all.aux_loss.find(load.step); loss != all.aux_loss.end() && loss->second != 0) {
    same_line_if_fits(scaled(120));
    dim_text(strprintf("aux loss %.3g", loss->second));
    tooltip("balancing losses of a token in this step, with their coefficients");
  }
  if (load.dropped > 0) {
    same_line_if_fits(scaled(130));
    colored_text(theme::kBad, strprintf("%.0f dropped", load.dropped));
    tooltip("assignments beyond the capacity of their expert");
  }
  if (m.dead.empty()) return;
  same_line_if_fits(scaled(160));
  colored_text(theme::kBad, "dead: " + name_experts(m.dead));
}

void ExpertPanel::heatmap(Workspace& workspace, const ExpertTable& all, ImVec2 size) {
  const float label = scaled(30), line = ImGui::GetTextLineHeightWithSpacing();
  const auto experts = static_cast<size_t>(std::max(all.num_experts, 1));
  const ImVec2 cell((size.x - label - scaled(4)) / static_cast<float>(experts),
                    (size.y - line) / static_cast<float>(all.layers.size()));
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const int step = shown_step(workspace);
  for (size_t row = 0; row < all.layers.size(); ++row) {
    const LayerLoad* const load = all.find(step, all.layers[row]);
    const float top = corner.y + line + cell.y * static_cast<float>(row);
    if (cell.y > scaled(9))
      centred_text(draw, {corner.x, top}, {label, cell.y}, all.layers[row] == layer_ ? theme::kText : theme::kDim,
                   "L" + std::to_string(all.layers[row]), 0.92f);
    for (size_t e = 0; load != nullptr && e < load->tokens.size(); ++e)
      heatmap_cell(*load, e, {corner.x + label + cell.x * static_cast<float>(e), top}, cell);
    if (all.layers[row] == layer_)
      draw.AddRect({corner.x + label, top}, {corner.x + label + cell.x * static_cast<float>(experts), top + cell.y},
                   theme::kText);
  }
  for (size_t e = 0; e < experts; ++e) {
    if (cell.x < scaled(20) && e % 8 != 0) continue;
    centred_text(draw, {corner.x + label + cell.x * static_cast<float>(e), corner.y},
                 {std::max(cell.x, scaled(20)), line}, theme::kDim, std::to_string(e), 0.92f);
  }
  ImGui::SetCursorScreenPos({corner.x + label, corner.y + line});
  const bool clicked = ImGui::InvisibleButton("heatmap", {size.x - label - scaled(4), std::max(size.y - line, 1.f)});
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const auto row = static_cast<size_t>(std::max(0.f, (mouse.y - corner.y - line) / cell.y));
  const auto expert = static_cast<size_t>(std::max(0.f, (mouse.x - corner.x - label) / cell.x));
  if (!ImGui::IsItemHovered() || row >= all.layers.size()) return;
  const LayerLoad* const load = all.find(step, all.layers[row]);
  if (load == nullptr || expert >= load->tokens.size()) return;
  ImGui::SetTooltip("layer %d, expert %zu: %.0f tokens, %.2f of the ideal", load->layer, expert, load->tokens[expert],
                    load->measures.ratio(load->tokens[expert]));
  if (!clicked) return;
  expert_ = layer_ == load->layer && expert_ == static_cast<int>(expert) ? -1 : static_cast<int>(expert);
  layer_ = load->layer;
}

// The ideal load has the middle colour of the scale, twice the ideal its last one; a dead expert is hatched.
void ExpertPanel::heatmap_cell(const LayerLoad& load, size_t expert, ImVec2 at, ImVec2 size) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const double ratio = load.measures.ratio(load.tokens[expert]);
  const float gap = size.x > 6 ? 1 : 0;
  const ImVec2 end(at.x + size.x - gap, at.y + size.y - (size.y > 6 ? 1 : 0));
  draw.AddRectFilled(at, end, heat_colour(static_cast<float>(std::clamp(ratio / 2, 0.0, 1.0))));
  const bool dead = load.tokens[expert] == 0 && load.measures.sum > 0;
  if (dead) hatch(draw, at, end, theme::kBad, scaled(5));
  if (size.x < scaled(kNumbersFrom) || size.y < scaled(13)) return;
  centred_text(draw, at, size, ratio > 1.44 ? IM_COL32(20, 22, 26, 255) : IM_COL32(222, 227, 234, 255),
               dead ? "dead" : strprintf("%.2f", ratio), 0.88f);
}

}  // namespace ranklab::viz
