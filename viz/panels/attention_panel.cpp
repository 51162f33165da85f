#include "viz/panels/attention_panel.h"

#include <algorithm>

#include "core/base/text.h"
#include "viz/panels/parts/attention_plots.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

constexpr double kEven = 1.05;  // max over mean
constexpr float kGap = 18;

std::string ranks_words(const TraceStore& store, const AttentionGroup& group) {
  std::vector<int> ranks;
  for (const size_t member : group.members) ranks.push_back(store.rank(member).global_rank);
  return "ranks " + join(std::span<const int>(ranks), ", ");
}

}  // namespace

const AttentionTable& AttentionPanel::table(Workspace& workspace) {
  const TraceStore& store = workspace.store();
  const int step = workspace.step();
  return table_.get({workspace.content(store.whole()), step},
                    [&] { return attention_table(store, store.step_window(step).value_or(store.whole())); });
}

std::string AttentionPanel::nothing_to_show(Workspace& workspace) {
  if (workspace.store().empty()) return workspace.why_empty();
  if (table(workspace).empty())
    return "This step has no attention that several ranks share: the trace has no context parallelism, or is less "
           "detailed than modules.\n\n./ranklab train --cp 8 --train-iters 3   records it";
  return {};
}

const AttentionGroup& AttentionPanel::group(Workspace& workspace) {
  const AttentionTable& all = table(workspace);
  return all.groups[std::min(group_, all.groups.size() - 1)];
}

const AttentionUse& AttentionPanel::use(Workspace& workspace) {
  const AttentionGroup& shown = group(workspace);
  return shown.uses[shown.at(workspace.cursor.time_ns)];
}

// Shows the group of the rank that was last selected in the timeline, or that is shown alone.
void AttentionPanel::follow_selection(Workspace& workspace) {
  std::optional<size_t> chosen;
  if (workspace.cursor.event) chosen = workspace.cursor.event->rank_index;
  if (workspace.filter.only_rank >= 0) chosen = workspace.store().index_of_rank(workspace.filter.only_rank);
  if (chosen == followed_) return;
  followed_ = chosen;
  const AttentionTable& all = table(workspace);
  for (size_t i = 0; chosen && i < all.groups.size(); ++i)
    if (all.groups[i].has(*chosen)) group_ = i;
}

void AttentionPanel::draw(Workspace& workspace) {
  follow_selection(workspace);
  controls(workspace);
  balance(workspace);
  const AttentionGroup& shown = group(workspace);
  const AttentionUse& at = use(workspace);
  const Places at_place = places(at, ImGui::GetContentRegionAvail());
  attention_grid(workspace, shown, at, at_place.blocks);
  if (at_place.beside) ImGui::SameLine(0, scaled(kGap));
  attention_shares(workspace, shown, at, at_place.shares);
}

AttentionPanel::Places AttentionPanel::places(const AttentionUse& use, ImVec2 space) {
  const float gap = scaled(kGap), shares = scaled(260);
  const float below = std::min(scaled(24) * static_cast<float>(use.tiles.size() + 1), space.y * 0.45f);
  const float left = std::min(space.x - gap - shares, attention_grid_width(use, space.y));
  const float above = std::min(space.y - below - gap, space.x);
  if (left > above) return {true, {left, space.y}, {std::min(space.x - left - gap, scaled(640)), space.y}};
  return {false, {space.x, above}, {space.x, below}};
}

void AttentionPanel::controls(Workspace& workspace) {
  const AttentionTable& all = table(workspace);
  const AttentionGroup& shown = group(workspace);
  if (all.groups.size() > 1) {
    ImGui::SetNextItemWidth(scaled(150));
    if (ImGui::BeginCombo("##group", ranks_words(workspace.store(), shown).c_str())) {
      for (size_t i = 0; i < all.groups.size(); ++i)
        if (ImGui::Selectable(ranks_words(workspace.store(), all.groups[i]).c_str(), i == group_)) group_ = i;
      ImGui::EndCombo();
    }
    tooltip("the context-parallel group that is drawn; it follows the rank that is chosen in the timeline");
    ImGui::SameLine();
  }
  const size_t at = shown.at(workspace.cursor.time_ns);
  ImGui::BeginDisabled(at == 0);
  if (ImGui::ArrowButton("previous", ImGuiDir_Left)) workspace.set_time(shown.uses[at - 1].range.begin_ns);
  ImGui::EndDisabled();
  tooltip("to the attention before");
  ImGui::SameLine(0, scaled(4));
  ImGui::BeginDisabled(at + 1 >= shown.uses.size());
  if (ImGui::ArrowButton("next", ImGuiDir_Right)) workspace.set_time(shown.uses[at + 1].range.begin_ns);
  ImGui::EndDisabled();
  tooltip("to the next layer's attention, forward or backward");
  ImGui::SameLine();
  text(use_words(use(workspace)));
  same_line_if_fits(scaled(250));
  attention_legend();
}

void AttentionPanel::balance(Workspace& workspace) {
  const AttentionUse& at = use(workspace);
  const bool even = at.imbalance() < kEven;
  colored_text(even ? theme::kGood : theme::kBad, strprintf("max / mean %.2f", at.imbalance()));
  tooltip(
      "pairs of a query and a key of the rank that has most, over those of the mean rank: how much longer attention "
      "takes than with an even split");
  const std::string words = balance_words(workspace.store(), group(workspace), at);
  same_line_if_fits(text_width(words));
  ImGui::PushTextWrapPos(0);
  text(words);
  ImGui::PopTextWrapPos();
}

}  // namespace ranklab::viz
