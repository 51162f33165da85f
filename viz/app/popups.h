// What opens over the window: command palette, find, keys, opening a file. Each closes with Esc. Thread rule: the
// thread of the ImGui context.
#pragma once
#include <string>
#include <vector>

#include "viz/panels/workspace.h"

namespace ranklab::viz {

class Popups {
 public:
  // Opens those that the workspace's requests ask for and draws those that are open.
  void draw(Workspace& workspace);

 private:
  void palette(Workspace& workspace);
  void find(Workspace& workspace);
  void keys();
  void file_dialog(Workspace& workspace);
  // A field at the top and arrow keys over `count` rows; returns the row that was chosen, or -1.
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
