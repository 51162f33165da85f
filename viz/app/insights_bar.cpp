#include "viz/app/insights_bar.h"

#include <string>

#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"

namespace ranklab::viz {
namespace {

const std::vector<Insight>& shown(Workspace& workspace) {
  static const std::vector<Insight> kNone;
  const bool hidden = !workspace.show_insights || workspace.has_live_run() || workspace.store().empty();
  return hidden ? kNone : workspace.insights();
}

bool failed(Workspace& workspace) { return workspace.run_end().failed; }

void failure(const std::string& words) {
  const float space = ImGui::GetContentRegionAvail().x;
  colored_text(theme::kBad, elided(words, space));
  if (text_width(words) > space) tooltip(words.c_str());
}

}  // namespace

float InsightsBar::height(Workspace& workspace) {
  const auto lines = static_cast<float>(shown(workspace).size() + (failed(workspace) ? 1 : 0));
  return lines == 0 ? 0 : lines * ImGui::GetTextLineHeightWithSpacing() + 2 * ImGui::GetStyle().WindowPadding.y;
}

void InsightsBar::draw(Workspace& workspace) {
  if (failed(workspace)) failure(workspace.run_end().words);
  int line = 0;
  for (const Insight& one : shown(workspace)) {
    ImGui::PushID(line++);
    const float left = ImGui::GetCursorPosX();
    if (ImGui::Selectable("##line", false, ImGuiSelectableFlags_AllowOverlap) && one.event)
      workspace.show_event(*one.event);
    if (ImGui::BeginItemTooltip()) {
      ImGui::PushTextWrapPos(scaled(560));
      text(one.text + ".");
      dim_text(one.advice);
      if (one.event) dim_text("Click: show where.");
      ImGui::PopTextWrapPos();
      ImGui::EndTooltip();
    }
    ImGui::SameLine(left);
    colored_text(theme::kAccent, format_percent(one.share));
    ImGui::SameLine(left + scaled(76));
    const float space = ImGui::GetContentRegionAvail().x, gap = scaled(14);
    text(elided(one.text, space));
    const float left_over = space - text_width(one.text) - gap;
    if (left_over > scaled(60)) {  // space for at least a word; the tooltip shows the whole text
      ImGui::SameLine(0, gap);
      dim_text(elided(one.advice, left_over));
    }
    ImGui::PopID();
  }
}

}  // namespace ranklab::viz
