// Every command that a key, a menu or the palette can call, one row each. Keys are the same as in Perfetto for commands
// that it has. Thread rule: the thread of the ImGui context.
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
  bool repeats = false;       // runs again while the key is held
  bool starts_group = false;  // a separator line above it in the menu
};

std::span<const UiCommand> ui_commands();
// Runs the commands whose keys were pressed, unless a text field has the keyboard focus. 1 to 8 isolate a rank, 0 shows
// all.
void run_pressed_commands(Workspace& workspace);

}  // namespace ranklab::viz
