// The lines below the transport bar: that the run failed, if it did, and what costs the most time, with one line per
// insight (viz/model/insights); a click on it shows its event. Hidden if there is nothing to say, and while a live run
// is running; View > What costs most hides the insights. Thread rule: the window's thread.
#pragma once
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

class InsightsBar {
 public:
  void draw(Workspace& workspace);
  static float height(Workspace& workspace);  // 0: hidden
};

}  // namespace ranklab::viz
