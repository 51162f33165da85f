// What `plan search --measure N` prints: the measurements of layouts next to their plans. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "cli/plan/measure_layouts.h"

namespace ranklab {

// A table, and the order of the layouts by planned, virtual and wall time.
std::string measured_text(const std::vector<MeasuredLayout>& rows);

}  // namespace ranklab
