// Schedules from a building block (Qi et al., "Pipeline parallelism with controllable memory", arXiv 2405.15362): one
// microbatch's way down and up a V, repeated every six cells (F, B and W of a rank's two stages). The number of cells
// from rank to rank determines how long activations live, and so the memory; then all idle cells are squeezed out.
// Thread rule: pure function.
#pragma once
#include <string>

#include "core/pipeline/schedule.h"

namespace ranklab {

// Cells from one rank to the next: forward down, forward up, backward down (of the upper stages), backward up.
struct VBlock {
  int forward_down = 1, forward_up = 1, backward_down = 1, backward_up = 1;
};

// Searches the numbers of idle cells between the four legs for the shortest schedule within the memory limit, which
// counts activations of a whole rank.
Schedule squeezed_v(std::string name, const ScheduleRequest& request, const ScheduleCosts& costs, const VBlock& block,
                    int memory_limit);

}  // namespace ranklab
