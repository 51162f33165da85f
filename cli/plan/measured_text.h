// What `plan search --measure N` prints: the measured layouts beside what was planned of them. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "cli/plan/measure_layouts.h"

namespace ranklab {

// A table, and the orders by planned, virtual and wall time.
std::string measured_text(const std::vector<MeasuredLayout>& rows);

}  // namespace ranklab
