// What the window remembers besides ImGui's own places and sizes: the layout's name, which panels are open, the display
// scale. Kept in the same file, as a section of its own; the file is in the user's state folder, apart from traces.
// Thread rule: the thread of the ImGui context.
#pragma once
#include <functional>
#include <string>

namespace ranklab::viz {

// $XDG_STATE_HOME/ranklab or ~/.local/state/ranklab. Made when it does not exist; "" when that is not possible, and
// then nothing is kept.
std::string state_folder();

// One "key=value" line each way. `read` is called for every line of the section when ImGui loads its settings, `write`
// gives the lines when it saves them.
struct SettingsSection {
  std::function<void(const std::string& key, const std::string& value)> read;
  std::function<std::string()> write;
};

// `section` must outlive the ImGui context's use of its settings; remove_settings() ends that.
void add_settings(SettingsSection& section);
void remove_settings();

}  // namespace ranklab::viz
