// A timeline as text: one row per rank, one block per action, scaled to time. Letters and microbatch numbers are always
// there; colour only helps. Thread rule: pure functions.
#pragma once
#include <span>
#include <string>

#include "cli/style.h"
#include "core/pipeline/simulate.h"

namespace ranklab {

struct GanttScale {
  double columns_per_time = 1;
  // Some actions are narrower than a column: each column then shows what fills most of it.
  bool dense = false;
};

// The scale at which `end` fits into a line of `width` columns, and the shortest action takes whole columns if it can.
// Rather than draw densely, up to `panels` lines are filled, one below the other.
GanttScale gantt_scale(const PipelineTimeline& line, double end, int width, int panels);

struct GanttView {
  double end = 0;  // of the axis
  int width = 80;
  bool all = false;  // every rank, however many
  bool axis = true;
};
std::string gantt(const Schedule& schedule, const PipelineTimeline& line, const GanttScale& scale, const Style& style,
                  const GanttView& view);
// What the letters of these schedules mean.
std::string gantt_legend(std::span<const Schedule* const> schedules, const GanttScale& scale, const Style& style);

// $COLUMNS, else the terminal's width, else 80.
int gantt_width();

}  // namespace ranklab
