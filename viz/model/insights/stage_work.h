// What each pipeline stage works per microbatch, from its actions and the modules inside them. Thread rule: pure.
#pragma once
#include <map>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct StageWork {
  int64_t actions_ns = 0;  // of one rank of the stage
  int64_t layers_ns = 0;   // inside them, where modules were recorded
  int64_t embedding_ns = 0;
  int64_t head_ns = 0;            // with the final norm, the loss and further prediction modules
  int layers = 0;                 // how many; 0: no modules recorded
  bool predicts_further = false;  // has modules of multi-token prediction, within the head or without it
  size_t rank_index = 0;
};

struct StageTable {
  std::map<int, StageWork> stages;
  std::map<size_t, int> stages_of_rank;  // how many stages a rank holds
  int microbatches = 0;                  // per step
  bool splits_backward = false;          // into B and W: a zero-bubble schedule
};
// Empty without a pipeline. Stages are those of the first rank that runs them.
StageTable stage_table(const TraceStore& store, const Window& window);

}  // namespace ranklab::viz
