// The bar that is always visible: step and event back and forward, play, follow, speed, loop, step number, the scrubber
// with its strip of idle ranks, the scope of tables, links. A narrow window gets more rows, and no link where it would
// be alone in one. Thread rule: the window's thread.
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
  // Height of its rows, as many as the last frame needed, and the space around them.
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
  Cached<ContentKey, std::vector<int64_t>> trouble_;  // where the loss or another value is not finite
  std::string link_;
  std::array<float, kGroups> widths_{};  // in the last frame
  int rows_ = 1;                         // of groups, above the scrubber
};

}  // namespace ranklab::viz
