// How long each pipeline stage works per microbatch, from its actions and the modules inside them. Thread rule: pure.
#pragma once
#include <map>

#include "viz/model/store/trace_store.h"

namespace ranklab::viz {

struct StageWork {
  int64_t actions_ns = 0;  // of one rank in the stage
  int64_t layers_ns = 0;   // the layers inside the actions, if modules were recorded
  int64_t embedding_ns = 0;
  int64_t head_ns = 0;            // including the final norm, the loss and modules of multi-token prediction
  int layers = 0;                 // number of layers; 0: no modules recorded
  bool predicts_further = false;  // has modules of multi-token prediction, with or without a head
  size_t rank_index = 0;
};

struct StageTable {
  std::map<int, StageWork> stages;
  std::map<size_t, int> stages_of_rank;  // how many stages a rank holds
  int microbatches = 0;                  // per step
  bool splits_backward = false;          // into B and W: a zero-bubble schedule
};
// Empty without a pipeline. The numbers of a stage are those of the first rank that runs it.
StageTable stage_table(const TraceStore& store, const Window& window);

}  // namespace ranklab::viz
