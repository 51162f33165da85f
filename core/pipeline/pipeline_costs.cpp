#include "core/pipeline/pipeline_costs.h"

namespace ranklab {

ScheduleCosts mean_of_rank(const PipelineCosts& costs, double ranks) {
  ScheduleCosts mean{.f = 0, .b = 0, .w = 0, .c = costs.c};
  for (const StageCost& stage : costs.stages) {
    mean.f += stage.f / ranks;
    mean.b += stage.b / ranks;
    mean.w += stage.w / ranks;
  }
  return mean;
}

}  // namespace ranklab
