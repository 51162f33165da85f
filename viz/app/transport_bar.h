// The bar that is always visible: step and event back and forward, play, follow, speed, loop, step number, the scrubber
// with its strip of idle ranks, the scope of tables, links. A narrow window uses more rows, and leaves out a link that
// would be alone in its row. Thread rule: the window's thread.
#pragma once
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "viz/panels/parts/cached.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class TransportBar {
 public:
  void draw(Workspace& workspace);
  // The height of its rows, as many as the last frame needed, and of the space around them.
  float height() const;

 private:
  enum Group { kButtons, kSpeed, kStep, kScope, kGroups };
  void begin_group(Group group);
  void end_group(Group group);
  void buttons(Workspace& workspace);
  void speed(Workspace& workspace);
  void step(Workspace& workspace);
  void scope(Workspace& workspace);
  void scrubber(Workspace& workspace);
  const std::vector<int64_t>& trouble(Workspace& workspace);
  void links(Workspace& workspace);

  Cached<std::pair<ContentKey, int>, std::vector<float>> strip_;
  Cached<ContentKey, std::vector<int64_t>> trouble_;  // times where the loss or another value is not finite
  std::string link_;
  std::array<float, kGroups> widths_{};  // in the last frame
  int rows_ = 1;                         // rows of groups above the scrubber
};

}  // namespace ranklab::viz
