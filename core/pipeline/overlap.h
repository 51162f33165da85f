// Pairs of a schedule that can share a GPU: a full backward and the forward that follows it on the same rank become one
// F&BW, so that the communication of one overlaps with the compute of the other (DualPipe, arXiv 2412.19437, 3.2.1;
// Megatron-Core's 1F1B with --overlap-moe-expert-parallel-comm). Existing pairs are kept. Torch-free.
// Thread rule: pure.
#pragma once
#include "core/pipeline/schedule.h"

namespace ranklab {

// Throws kInvalidArgument where nothing can be paired (one microbatch), or where a pair would wait for itself.
Schedule overlap_neighbours(const Schedule& schedule);

}  // namespace ranklab
