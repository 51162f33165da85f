#include "viz/app/settings.h"

#include <imgui_internal.h>
#include <cstdlib>
#include <filesystem>

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

void remove_settings() {
  // The ImGui context saves its settings when it ends, which is later, when the section no longer exists.
  const char*& path = ImGui::GetIO().IniFilename;
  if (path != nullptr && ImGui::GetCurrentContext()->SettingsLoaded) ImGui::SaveIniSettingsToDisk(path);
  path = nullptr;
  ImGui::RemoveSettingsHandler(kType);
}

std::string state_folder() {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  std::filesystem::path folder;
  if (state != nullptr && *state == '/') {
    folder = std::filesystem::path(state) / "ranklab";
  } else if (home != nullptr && *home != '\0') {
    folder = std::filesystem::path(home) / ".local" / "state" / "ranklab";
  } else {
    return {};
  }
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  return failed ? std::string() : folder.string();
}

}  // namespace ranklab::viz
