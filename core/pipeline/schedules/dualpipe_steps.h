// The eight steps that DualPipe and DualPipeV share (DeepSeek-AI, arXiv 2412.19437, figure 5; Qi's cut-in-half remark
// on it). A rank works on two streams of microbatches at once, stream 0 and stream 1, each with a stage of its own on
// this rank: forwards of one stream are overlapped with full backwards of the other. Thread rule: pure function.
#pragma once
#include <vector>

#include "core/pipeline/schedule.h"

namespace ranklab {

struct DualPipeRank {
  int from_outside = 0;  // number of pipeline ranks between this one and the one where stream 0 enters
  int half = 1;          // number of ranks from where a stream enters to the middle
  int count = 0;         // microbatches of each stream
  int stage[2] = {0, 0};
  int first_microbatch[2] = {0, 0};
};

std::vector<Action> dualpipe_actions(const DualPipeRank& rank);

}  // namespace ranklab
