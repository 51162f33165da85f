// Traces with known answers, made from schedules.
#pragma once
#include <cstdint>

#include "core/trace/chrome_reader.h"
#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

// 1F1B with p = 8, m = 32, F = 1, BW = 2: 117 units.
TraceFile one_f_one_b();

// 1F1B with p = 4, m = 8, F = 1, BW = 2, three steps of 3 (m + p - 1) = 33 units one after the other.
constexpr int64_t kThreeStepsLength = 33'000'000;
TraceFile three_steps();

// What is shown of a schedule: its times in units, not in nanoseconds.
TraceStore in_units(TraceFile file);

}  // namespace ranklab::viz
