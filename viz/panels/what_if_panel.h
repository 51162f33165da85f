// Schedules without a run: sliders for p, m, v and the costs, several schedules on one scale of time with both bubbles
// and peak activations, and the command that trains with one. Numbers are core/pipeline's. Thread rule: the window's
// thread.
#pragma once
#include <deque>
#include <string>
#include <vector>

#include "core/pipeline/schedule.h"
#include "viz/panels/gantt_strip.h"
#include "viz/panels/panel.h"
#include "viz/panels/workspace.h"

namespace ranklab::viz {

// One schedule, timed; or why it cannot be made.
struct WhatIfResult {
  std::string name;
  std::string problem;
  TraceStore store;
  BubbleReport bubbles;
  double makespan = 0;
  double bubble_of_total = 0, bubble_of_ideal = 0;
  double peak_activations = 0;  // of the worst rank, in microbatches
  int64_t messages = 0;
  int stages = 0;  // that a microbatch passes
};

class WhatIfPanel final : public Panel {
 public:
  WhatIfPanel();
  void draw(Workspace& workspace) override;
  bool scrolls_itself() const override { return true; }

  const std::deque<WhatIfResult>& results() const { return results_; }
  // Trains with the schedule, on a small model.
  std::string train_command(const WhatIfResult& result) const;

 private:
  struct Inputs {
    ScheduleRequest request{8, 32, 2};
    ScheduleCosts costs;
    std::vector<std::string> names = {"1f1b", "zb-h1"};
  };
  void sliders();
  void choose_schedules();
  void compute();
  void result(Workspace& workspace, WhatIfResult& result, GanttStrip& strip, TimeRange scale, float row_height);

  Inputs inputs_;
  bool stale_ = true;
  std::deque<WhatIfResult> results_;
  std::vector<GanttStrip> strips_;
};

}  // namespace ranklab::viz
