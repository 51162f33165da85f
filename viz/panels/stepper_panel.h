// The stepper: where each rank of a live world is, what stopped it, breakpoints, and the commands that advance it.
// Thread rule: the window's thread.
#pragma once
#include <string>

#include "viz/panels/panel.h"
#include "viz/panels/parts/workspace.h"

namespace ranklab::viz {

// "step 8   state 87cc..." of a run that stands. One that runs does not tell where it is.
std::string where_text(const StepperState& state);
// Whether a rank's time and events are those of now: a running one tells them when it stops, one that ran to the end
// does not.
bool is_told(const StepperState& state, const RankState& rank);

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
