// A training step with a bug of the museum, compared with the step on one rank, in the form that the lesson uses. Cost:
// some tenths of a second. Thread rule: one thread.
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
  size_t first = 0;                  // index of the first wrong one; the number of tensors if none is wrong
  // One element of that gradient (without a bug, of the last norm's gradient) on all ranks that have it, and on one
  // rank.
  std::vector<RankGradient> ranks;
  double right = 0;
  double loss = 0, loss_of_one = 0;
};

// `dims`: tp and dp. `bug`: "" for none.
WrongStep wrong_step(const std::string& bug, ParallelDims dims);

}  // namespace ranklab::lesson
