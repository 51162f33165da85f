// The learner's merge_partial() alone: blocks of random scores against the softmax over all of them. Thread rule: pure.
#pragma once
#include <vector>

#include "lessons/12_split_a_long_sequence/exercise.h"

namespace ranklab::lesson {

// The largest error of output and log-sum-exp after merging `blocks` blocks into nothing, relative to the largest
// number wanted; infinite for NaN. Scores lie around `around`. `hidden`: each query attends to some blocks only, a
// query to none, and the first block has no keys at all.
double merge_error(decltype(::merge_partial)* merge, int blocks, double around, bool hidden);

}  // namespace ranklab::lesson
