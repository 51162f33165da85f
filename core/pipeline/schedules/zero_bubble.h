// The hand-crafted zero-bubble schedules: 1F1B whose weight gradients run later, in what would be bubbles.
// Thread rule: pure function.
#pragma once
#include <functional>
#include <string>

#include "core/pipeline/schedule.h"

namespace ranklab {

// Rank i forwards warmup(i) microbatches first, then repeats B, W, F; its W lag delay(i) microbatches behind its B.
Schedule zero_bubble(std::string name, const ScheduleRequest& request, const std::function<int(int rank)>& warmup,
                     const std::function<int(int rank)>& delay);

}  // namespace ranklab
