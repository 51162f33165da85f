// The schedule without pipeline stages: each microbatch forward then backward, gradients accumulate, one update.
#pragma once
#include <memory>

#include "core/runtime/components.h"

namespace ranklab {

std::unique_ptr<ScheduleStrategy> make_microbatch_schedule();

}  // namespace ranklab
