// Tests the learner's merge_partial() alone: blocks of random scores are merged and compared with the softmax over all
// of them. Thread rule: pure.
#pragma once
#include <vector>

#include "lessons/12_split_a_long_sequence/exercise.h"

namespace ranklab::lesson {

// The largest error of output and log-sum-exp after merging `blocks` blocks into an empty result, relative to the
// largest expected number; infinite for NaN. Scores are near `around`. `hidden`: each query attends only to some
// blocks, one query to none, and no query attends to the first block.
double merge_error(decltype(::merge_partial)* merge, int blocks, double around, bool hidden);

}  // namespace ranklab::lesson
