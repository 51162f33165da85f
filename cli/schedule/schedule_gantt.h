// A timeline as text: one row per rank, one block per action, scaled to time. Letters and microbatch numbers are always
// shown; colour is only an addition. Thread rule: pure functions.
#pragma once
#include <span>
#include <string>

#include "cli/common/style.h"
#include "core/pipeline/simulate.h"

namespace ranklab {

struct GanttScale {
  double columns_per_time = 1;
  // Some actions are narrower than a column, so each column shows the action that takes most of it.
  bool dense = false;
  bool microseconds = false;  // unit of times; otherwise they are costs without a unit
};

// The scale at which `end` fits into a line of `width` columns, and the shortest action fills whole columns if
// possible. Up to `panels` lines, one below the other, are used before the drawing becomes dense.
GanttScale gantt_scale(const PipelineTimeline& line, double end, int width, int panels);

struct GanttView {
  double end = 0;  // of the time axis
  int width = 80;
  bool all = false;  // show every rank, however many there are
  bool axis = true;
};
std::string gantt(const Schedule& schedule, const PipelineTimeline& line, const GanttScale& scale, const Style& style,
                  const GanttView& view);
// The meaning of the letters in these schedules.
std::string gantt_legend(std::span<const Schedule* const> schedules, const GanttScale& scale, const Style& style);

// $COLUMNS, else the terminal's width, else 80.
int gantt_width();

}  // namespace ranklab
