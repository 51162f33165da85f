// Messages of the viewer and of a live run, with a filter. A click on a line that names a place jumps there. Thread
// rule: the window's thread.
#pragma once
#include <string>

#include "viz/panels/panel.h"

namespace ranklab::viz {

class LogPanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;

 private:
  std::string filter_;
};

}  // namespace ranklab::viz
