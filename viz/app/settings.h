// What the window remembers in addition to ImGui's own positions and sizes: the layout's name, which panels are open,
// the display scale. Stored in a section of its own in the same file; the file is in the user's state folder, not with
// the traces. Thread rule: the thread of the ImGui context.
#pragma once
#include <functional>
#include <string>

namespace ranklab::viz {

// $XDG_STATE_HOME/ranklab or ~/.local/state/ranklab, created on demand; "" when that is not possible, and then nothing
// is saved.
std::string state_folder();

// Reads and writes "key=value" lines. `read` is called for every line of the section when ImGui loads its settings,
// `write` returns the lines when it saves them.
struct SettingsSection {
  std::function<void(const std::string& key, const std::string& value)> read;
  std::function<std::string()> write;
};

// `section` must outlive the ImGui context's use of its settings; remove_settings() ends that.
void add_settings(SettingsSection& section);
void remove_settings();

}  // namespace ranklab::viz
