#include "viz/app/settings.h"

#include <imgui_internal.h>

namespace ranklab::viz {
namespace {

constexpr const char* kType = "ranklab";

SettingsSection& section_of(const ImGuiSettingsHandler& handler) {
  return *static_cast<SettingsSection*>(handler.UserData);
}

void* open_section(ImGuiContext*, ImGuiSettingsHandler* handler, const char*) { return handler->UserData; }

void read_line(ImGuiContext*, ImGuiSettingsHandler* handler, void*, const char* line) {
  const std::string text = line;
  const size_t equals = text.find('=');
  if (equals != std::string::npos) section_of(*handler).read(text.substr(0, equals), text.substr(equals + 1));
}

void write_section(ImGuiContext*, ImGuiSettingsHandler* handler, ImGuiTextBuffer* out) {
  out->appendf("[%s][window]\n%s\n", kType, section_of(*handler).write().c_str());
}

}  // namespace

void add_settings(SettingsSection& section) {
  ImGuiSettingsHandler handler;
  handler.TypeName = kType;
  handler.TypeHash = ImHashStr(kType);
  handler.ReadOpenFn = open_section;
  handler.ReadLineFn = read_line;
  handler.WriteAllFn = write_section;
  handler.UserData = &section;
  ImGui::AddSettingsHandler(&handler);
}

void remove_settings() { ImGui::RemoveSettingsHandler(kType); }

}  // namespace ranklab::viz
