// Formats times and sizes for the window, the text mode and the SVG. In a drawn schedule, times are in units. Thread
// rule: pure.
#pragma once
#include <cstdint>
#include <string>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

std::string format_time(const TraceStore& store, int64_t time_ns);  // "3.40 ms", "117 units"
// The position of a step among the trace's steps: "2 of 6"; "6 steps" if it is none of them.
std::string place_text(const TraceStore& store, int step);
// 0 if the whole is 0.
double share_of(int64_t part_ns, int64_t whole_ns);
std::string format_percent(double share);  // 0.17948 -> "17.95 %"
// The distance between ticks of an axis: 1, 2 or 5 times a power of ten, so that at most `marks` ticks fit into
// `length`.
int64_t axis_step_ns(int64_t length_ns, int marks);
// The text of a tick, with as many digits as distinguish it from the next one: "91.52 ms" if ticks are 20 us apart.
std::string tick_text(const TraceStore& store, int64_t time_ns, int64_t step_ns);

}  // namespace ranklab::viz
