// The bar that is always visible: step and event back and forward, play, follow, speed, loop, step number, the scrubber
// with its strip of idle ranks, the scope of tables, links. Thread rule: the window's thread.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "viz/panels/parts/cached.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class TransportBar {
 public:
  void draw(Workspace& workspace);
  // Height of both rows and the space around them.
  static float height();

 private:
  void buttons(Workspace& workspace);
  void place(Workspace& workspace);
  void scrubber(Workspace& workspace);
  const std::vector<int64_t>& trouble(Workspace& workspace);
  void links(Workspace& workspace);

  Cached<std::pair<ContentKey, int>, std::vector<float>> strip_;
  Cached<ContentKey, std::vector<int64_t>> trouble_;  // where the loss or another value is not finite
  std::string link_;
};

}  // namespace ranklab::viz
