// Schedules without a run: sliders for p, m, v and the costs, several schedules on one time scale with both bubble
// ratios and peak activations; a button trains with one of them, in a separate process. Numbers are computed by
// core/pipeline. Thread rule: the window's thread.
#pragma once
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "core/pipeline/schedule.h"
#include "viz/panels/panel.h"
#include "viz/panels/parts/schedule_run.h"
#include "viz/panels/parts/workspace.h"
#include "viz/panels/timeline/gantt_strip.h"

namespace ranklab::viz {

// One schedule with its timing, or the reason why it cannot be built.
struct WhatIfResult {
  std::string name;
  std::string problem;
  TraceStore store;
  BubbleReport bubbles;
  double makespan = 0;
  double bubble_of_total = 0, bubble_of_ideal = 0;
  double peak_activations = 0;  // on the worst rank, in microbatches
  int64_t messages = 0;
  int stages = 0;  // number of stages that a microbatch passes
};

class WhatIfPanel final : public Panel {
 public:
  WhatIfPanel();
  void draw(Workspace& workspace) override;
  bool advance(Workspace& workspace) override { return run_.advance(workspace); }
  bool scrolls_itself() const override { return true; }

  const ScheduleRequest& request() const { return inputs_.request; }
  const std::deque<WhatIfResult>& results() const { return results_; }
  const ScheduleRun& run() const { return run_; }
  // The ranklab program that "run it" starts; by default this process's own executable.
  void set_program(std::string path) { program_ = std::move(path); }
  // The command that trains with the schedule, on a small model.
  std::string train_command(const WhatIfResult& result) const;

 private:
  struct Inputs {
    ScheduleRequest request{8, 32, 2};
    ScheduleCosts costs;
    std::vector<std::string> names = {"1f1b", "zb-h1"};
  };
  void follow_run(Workspace& workspace);
  void fields();
  void choose_schedules();
  void run_status();
  void compute();
  std::vector<std::string> train_arguments(const WhatIfResult& result) const;
  void run_buttons(Workspace& workspace, const WhatIfResult& result);
  void start(Workspace& workspace, const WhatIfResult& result);
  void result(Workspace& workspace, WhatIfResult& result, GanttStrip& strip, TimeRange scale, float row_height);

  Inputs inputs_;
  bool stale_ = true;
  uint64_t followed_ = 0;  // the trace whose pipeline gave the first inputs
  std::string of_run_;     // the source of the first inputs, in words
  float headings_ = 0;     // height of everything except the strips, in the last frame
  std::deque<WhatIfResult> results_;
  std::vector<GanttStrip> strips_;
  std::string program_;
  ScheduleRun run_;
};

}  // namespace ranklab::viz
