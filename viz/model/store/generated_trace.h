// A trace of any size for benchmarks and tests: steps of a 1F1B pipeline on 8 ranks, with modules, kernels, messages,
// memory and loss, timed as by the simulator. Thread rule: pure.
#pragma once
#include "core/trace/chrome_reader.h"

namespace ranklab::viz {

// At least `events` events, in whole steps.
TraceFile generated_trace(int64_t events);

}  // namespace ranklab::viz
