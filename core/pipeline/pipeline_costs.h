// What each stage of a pipeline costs, for simulations of schedules: microseconds, either from a model on a machine
// (recorded_costs.h) or from a traced run (trace_costs.h). Torch-free. Thread rule: plain data.
#pragma once
#include <vector>

#include "core/pipeline/simulate.h"

namespace ranklab {

struct PipelineCosts {
  std::vector<StageCost> stages;
  double c = 0;        // latency of a message between ranks
  bool split = true;   // whether B and W were measured separately; if not, each is half of BW
  ScheduleCosts mean;  // per rank, for schedules that are searched by cost
};

// Costs of one microbatch on one rank: the sum over all stages divided by `ranks`. REQUIRES: stages and c are filled.
ScheduleCosts mean_of_rank(const PipelineCosts& costs, double ranks);

}  // namespace ranklab
