// A rank's communicator on cpu_sim: posts calls to the run, which matches them with the peers', and has the mover
// transfer the bytes. The same for threads and processes as ranks. Thread rule: its rank's thread only.
#pragma once
#include <memory>
#include <string>

#include "backends/cpu_sim/mover.h"
#include "backends/cpu_sim/run.h"
#include "core/comm/communicator.h"

namespace ranklab::cpu_sim {

// `label` is unique in the run and the same on every member.
CommunicatorPtr make_rank_communicator(std::shared_ptr<Run> run, Group group, std::string label,
                                       std::shared_ptr<Mover> mover);

}  // namespace ranklab::cpu_sim
