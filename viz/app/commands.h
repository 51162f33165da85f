// Every command available by key, menu or palette, one row each. Keys are Perfetto's where it has one. Thread rule: the
// thread of the ImGui context.
#pragma once
#include <imgui.h>

#include <span>

namespace ranklab::viz {

class Workspace;

struct UiCommand {
  const char* menu;  // "File", "View", "Run", "Help"
  const char* name;
  ImGuiKeyChord key;     // 0: none
  const char* key_text;  // as displayed
  void (*run)(Workspace& workspace);
  bool repeats = false;       // while the key is held
  bool starts_group = false;  // a separator line above it in the menu
};

std::span<const UiCommand> ui_commands();
// Runs the commands whose keys were pressed, unless a text field has the keyboard. 1 to 8 isolate a rank, 0 shows all.
void run_pressed_commands(Workspace& workspace);

}  // namespace ranklab::viz
