// Deadlocks of blocking messages. Between two actions a rank posts the sends of the first one's results and the
// receives of the second one's inputs together (as batch_isend_irecv does), and continues when each has met its
// counterpart. Torch-free. Thread rule: pure functions.
#pragma once
#include <string>

#include "core/pipeline/schedule.h"

namespace ranklab {

// "" when the schedule completes under these rules; otherwise the ranks that wait for each other, and what for.
// REQUIRES: the schedule is sound with buffered messages.
std::string find_blocking_cycle(const Schedule& schedule);

}  // namespace ranklab
