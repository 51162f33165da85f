#include "viz/app/gui_context.h"

#include <imgui.h>
#include <implot.h>

#include "viz/panels/parts/theme.h"

namespace ranklab::viz {

GuiContext::GuiContext(const std::string& settings_path, float scale) : settings_path_(settings_path) {
  ImGui::CreateContext();
  ImPlot::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.ConfigFlags |= ImGuiConfigFlags_DockingEnable;
  io.ConfigErrorRecoveryEnableAssert = false;
  io.ConfigErrorRecoveryEnableTooltip = false;
  io.ConfigDragClickToInputText = true;
  io.ConfigWindowsMoveFromTitleBarOnly = true;
  io.IniFilename = settings_path_.empty() ? nullptr : settings_path_.c_str();
  load_font();
  apply_theme(scale);
}

GuiContext::~GuiContext() {
  ImPlot::DestroyContext();
  ImGui::DestroyContext();
}

}  // namespace ranklab::viz
