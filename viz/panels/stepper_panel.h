// The stepper: where each rank of a live world is, what stopped it, breakpoints, and the commands that advance it.
// Thread rule: the window's thread.
#pragma once
#include <string>

#include "viz/panels/panel.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

// "step 8   state 87cc..." for a paused run. A running one does not report where it is.
std::string where_text(const StepperState& state);
// Whether a rank's time and events are up to date: a running rank reports them only when it stops, and one that ran to
// the end does not report them.
bool is_up_to_date(const StepperState& state, const RankState& rank);

class StepperPanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;

 private:
  void commands(StepperControl& stepper, const StepperState& state);
  void hits(Workspace& workspace, const StepperState& state);
  void ranks(Workspace& workspace, StepperControl& stepper, const StepperState& state);
  void breakpoints(StepperControl& stepper, const StepperState& state);

  std::string typed_;
  std::string complaint_;
};

}  // namespace ranklab::viz
