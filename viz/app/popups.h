// Pop-ups over the window: command palette, find, keys, opening a file. Each closes with Esc. Thread rule: the thread
// of the ImGui context.
#pragma once
#include <string>
#include <vector>

#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class Popups {
 public:
  // Opens the pop-ups that the workspace requests, and draws the open ones.
  void draw(Workspace& workspace);

 private:
  void palette(Workspace& workspace);
  void find(Workspace& workspace);
  void keys();
  void file_dialog(Workspace& workspace);
  // A text field above `count` rows, which arrow keys select. RETURNS: the chosen row, or -1.
  template <typename DrawRow>
  int pick(const char* hint, size_t count, DrawRow draw_row);

  std::string typed_;
  std::string searched_;
  bool just_opened_ = false;
  int at_ = 0;
  std::vector<EventRef> found_;
  std::string folder_;
  bool compare_ = false;
};

}  // namespace ranklab::viz
