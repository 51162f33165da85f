// Small training runs that record hashes of the weights before each step. Cost: milliseconds a step. Thread rule: one
// thread.
#pragma once
#include <string>
#include <vector>

#include "core/comm/parallel_dims.h"
#include "lessons/17_which_copies_drift/exercise.h"

namespace ranklab::lesson {

struct DriftingRun {
  std::vector<double> losses;                  // by step
  std::vector<std::vector<RankHashes>> steps;  // by step and rank
};

// `bug`: a name in the museum; "" for none.
DriftingRun drifting_run(const std::string& bug, ParallelDims dims, int steps);

}  // namespace ranklab::lesson
