// How many forwards 1F1B runs before it alternates. Thread rule: pure functions.
#pragma once

#include "core/pipeline/schedule.h"

namespace ranklab {

// For ranks with one stage each: one forward for each rank that follows. A pair (ScheduleRequest::pairs) gives both of
// its results only at its end: with one forward per hop the pairs of two neighbours would wait for each other in turn,
// and both ranks would idle half of the time. Two per hop, as interleaved 1F1B has them, let the pairs of all ranks run
// at once.
inline int one_stage_warmup(const ScheduleRequest& request, int rank) {
  return (request.pairs ? 2 : 1) * (request.num_ranks - rank - 1);
}

}  // namespace ranklab
