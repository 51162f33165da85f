// Messages that keep both sides waiting. Between two actions a rank posts what the first one made for others and what
// the second one needs, together (as batch_isend_irecv does), and goes on when each of these has met its other side.
// Torch-free. Thread rule: pure functions.
#pragma once
#include <string>

#include "core/pipeline/schedule.h"

namespace ranklab {

// "" when the schedule runs to its end that way, else the ranks that wait for each other, and for what.
// REQUIRES: a schedule that is sound with buffered messages.
std::string find_blocking_cycle(const Schedule& schedule);

}  // namespace ranklab
