// Two traces on one time scale, and their differences: per operation, per step, memory peaks. Thread rule: the window's
// thread.
#pragma once
#include <utility>
#include <vector>

#include "viz/model/trace_diff.h"
#include "viz/panels/panel.h"
#include "viz/panels/parts/cached.h"
#include "viz/panels/parts/workspace.h"
#include "viz/panels/timeline/gantt_strip.h"

namespace ranklab::viz {

class DiffPanel final : public Panel {
 public:
  void draw(Workspace& workspace) override;
  std::string nothing_to_show(Workspace& workspace) override;

 private:
  using Key = std::pair<ContentKey, const TraceStore*>;
  void strips(Workspace& workspace);
  void ops(const Workspace& workspace, const TraceDiff& diff);
  void values(const TraceDiff& diff);

  Cached<Key, TraceDiff> diff_;
  Cached<Key, BubbleReport> other_bubbles_;
  GanttStrip strip_, other_strip_;
};

}  // namespace ranklab::viz
