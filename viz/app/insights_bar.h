// Below the transport bar, in words: that the run failed, if it did, and what costs most: a line for each insight
// (viz/model/insights), a click shows its event. Hidden where there is nothing to say, and while a live run goes on;
// View > What costs most hides the insights. Thread rule: the window's thread.
#pragma once
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class InsightsBar {
 public:
  void draw(Workspace& workspace);
  static float height(Workspace& workspace);  // 0: hidden
};

}  // namespace ranklab::viz
