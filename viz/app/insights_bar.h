// What costs most, in words, below the transport bar: a line for each insight (viz/model/insights), a click shows its
// event. Hidden where nothing does, for live traces, and by View > What costs most. Thread rule: the window's thread.
#pragma once
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class InsightsBar {
 public:
  void draw(Workspace& workspace);
  static float height(Workspace& workspace);  // 0: hidden
};

}  // namespace ranklab::viz
