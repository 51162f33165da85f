// A training step with a bug of the museum, held to one rank's, as the lesson tells it. Cost: some tenths of a second.
// Thread rule: one thread.
#pragma once
#include <string>
#include <vector>

#include "core/comm/parallel_dims.h"
#include "lessons/14_find_the_wrong_reduction/exercise.h"

namespace ranklab::lesson {

struct NamedTensor {
  std::string name;
  double epsilons = 0, allowed = 0;
};

struct WrongStep {
  std::vector<NamedTensor> tensors;  // in causal order
  size_t first = 0;                  // the first wrong one; their number where none is
  // One element of that gradient (without a bug: of the last norm's), on all ranks that have it and on one rank.
  std::vector<RankGradient> ranks;
  double right = 0;
  double loss = 0, loss_of_one = 0;
};

// `dims`: tp and dp. `bug`: "" for none.
WrongStep wrong_step(const std::string& bug, ParallelDims dims);

}  // namespace ranklab::lesson
