// What the window remembers besides the positions and sizes that ImGui stores: the layout's name, which panels are
// open, the display scale. It is stored in a separate section of the same file, which is in the user's state folder,
// not next to the traces. Thread rule: the thread of the ImGui context.
#pragma once
#include <functional>
#include <string>

namespace ranklab::viz {

// $XDG_STATE_HOME/ranklab or ~/.local/state/ranklab, created on demand; "" if that is not possible, and then nothing is
// saved.
std::string state_folder();

// Reads and writes "key=value" lines. `read` is called for every line of the section when ImGui loads its settings;
// `write` returns the lines when ImGui saves them.
struct SettingsSection {
  std::function<void(const std::string& key, const std::string& value)> read;
  std::function<std::string()> write;
};

// `section` must stay valid as long as the ImGui context uses it, which remove_settings() ends.
void add_settings(SettingsSection& section);
void remove_settings();

}  // namespace ranklab::viz
