#include "viz/panels/log_panel.h"

#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include "core/base/text.h"
#include "viz/model/store/time_text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

void LogPanel::draw(Workspace& workspace) {
  ImGui::SetNextItemWidth(scaled(220));
  ImGui::InputTextWithHint("##filter", "filter", &filter_);
  const TraceStore& store = workspace.store();
  if (!ImGui::BeginChild("lines")) return ImGui::EndChild();
  int id = 0;
  for (const LogLine& line : workspace.log_lines()) {
    ++id;
    if (!filter_.empty() && line.text.find(filter_) == std::string::npos) continue;
    ImGui::PushID(id);
    if (line.global_rank >= 0) {
      dim_text(strprintf("r%d", line.global_rank));
      ImGui::SameLine();
    }
    if (line.time_ns != kNoTime) {
      if (ImGui::SmallButton(format_time(store, line.time_ns - store.range().begin_ns).c_str()))
        workspace.set_time(line.time_ns);
      ImGui::SameLine();
    }
    const ImU32 color = line.level == LogLine::Level::kError     ? theme::kBad
                        : line.level == LogLine::Level::kWarning ? theme::kCursor
                                                                 : theme::kText;
    ImGui::PushTextWrapPos(0);
    colored_text(color, line.text);
    ImGui::PopTextWrapPos();
    ImGui::PopID();
  }
  if (ImGui::GetScrollY() >= ImGui::GetScrollMaxY()) ImGui::SetScrollHereY(1);
  ImGui::EndChild();
}

}  // namespace ranklab::viz
