// Text and tables of `ranklab schedule`. Thread rule: pure functions.
#pragma once
#include <string>
#include <vector>

#include "cli/common/style.h"
#include "cli/schedule/schedule_source.h"

namespace ranklab {

// The list of schedules as in the table of docs/schedules.md: the bubble and memory peak of each with p 8, m 32 and F =
// B = W.
std::string schedule_table();

std::string schedule_headline(const LoadedSchedule& loaded, const ScheduleOptions& options, const Style& style);
// Both bubble ratios, what the ranks waited for, and one line per rank.
std::string schedule_summary(const LoadedSchedule& loaded, const ScheduleOptions& options, const PipelineTimeline& line,
                             const Style& style, bool all);
std::string schedule_proof_text(const LoadedSchedule& loaded, const Style& style);

struct ComparedSchedule {
  LoadedSchedule loaded;
  PipelineTimeline line;
};
std::string schedule_comparison(const std::vector<ComparedSchedule>& all, const Style& style);

}  // namespace ranklab
