// Brings the traces of ranks that are processes to rank 0, so that one file shows them all. Each process counts wall
// time from its own start, on a clock of its own host: a few barriers, which all ranks leave at nearly the same moment,
// show by how much, and the traces arrive on rank 0's wall clock (to a fraction of a millisecond; virtual times need no
// such help). Cost: each trace crosses once. Thread rule: collective, on each rank's thread.
#pragma once
#include <c10/core/Device.h>

#include <vector>

#include "core/comm/communicator.h"
#include "core/trace/event.h"

namespace ranklab {

// All ranks' traces by rank on global rank 0, nothing elsewhere. `world` holds all ranks in order.
std::vector<RankTrace> gather_traces(Communicator& world, c10::Device device, RankTrace mine);

}  // namespace ranklab
