// Formats times and sizes for the window, the text mode and the SVG. A drawn schedule counts in units. Thread rule:
// pure.
#pragma once
#include <cstdint>
#include <string>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

std::string format_time(const TraceStore& store, int64_t time_ns);  // "3.40 ms", "117 units"
// Which of the trace's steps it is, by position: "2 of 6"; "6 steps" where it is none of them.
std::string place_text(const TraceStore& store, int step);
// 0 if the whole is 0.
double share_of(int64_t part_ns, int64_t whole_ns);
std::string format_percent(double share);  // 0.17948 -> "17.95 %"
// Distance between the ticks of an axis, 1, 2 or 5 times a power of ten, so that at most `marks` fit into `length`.
int64_t axis_step_ns(int64_t length_ns, int marks);
// The text of a tick, with as many digits as tell it from the next one: "91.52 ms" where ticks are 20 us apart.
std::string tick_text(const TraceStore& store, int64_t time_ns, int64_t step_ns);

}  // namespace ranklab::viz
