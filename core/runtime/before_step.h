// A schedule that calls `look` on its rank before each training step. Thread rule: `look` runs on the ranks' threads.
#pragma once
#include <functional>
#include <memory>

#include "core/runtime/components.h"

namespace ranklab {

std::shared_ptr<ScheduleSelector> before_each_step(std::shared_ptr<ScheduleSelector> selector,
                                                   std::function<void(StepContext&)> look);

}  // namespace ranklab
