// A timeline as text: one line per rank (and row), where each column shows the dominant event, with letters if they
// fit. For `viz --format text`, screen readers and doctests. Thread rule: pure.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct TextTimelineOptions {
  TimeRange range;   // empty: the whole trace
  int width = 80;    // columns of the whole line
  bool axes = true;  // also the rows of communication; else only compute
  // Puts escape codes around painted blocks, for terminals; false: plain text.
  bool colour = false;
};

std::string text_timeline(const TraceStore& store, const TextTimelineOptions& options = {});
// A table of busy, bubble of total, bubble of ideal, and exposed, for each rank and on average.
std::string text_totals(const TraceStore& store, const Window& window);

}  // namespace ranklab::viz
