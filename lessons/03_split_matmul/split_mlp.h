// y = x + tanh(norm(x) A) B in fp64, forward and backward: on one rank with autograd, and split over 8 ranks, written
// by hand with the learner's collectives. Legend: T tokens, H hidden, F intermediate features. Thread rule: one run at
// a time.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "lessons/03_split_matmul/exercise.h"
#include "lessons/rank_run.h"

namespace ranklab::lesson {

struct MlpTensors {  // the output and the gradients
  at::Tensor y_TH, x_TH, gain_H, a_HF, b_FH;
};

struct MeetingPoints {
  decltype(::enter)* enter;
  decltype(::leave)* leave;
  decltype(::leave_backward)* leave_backward;
  decltype(::enter_backward)* enter_backward;
  decltype(::norm_gradient)* norm_gradient;
};

constexpr int64_t kTokens = 64, kMlpHidden = 32, kFeatures = 128;

MlpTensors dense_mlp();

struct SplitRun {
  std::vector<RankRecord> records;
  // The largest error on any rank, relative to the largest element of the dense reference; infinite for NaN.
  double y_error = 0, x_error = 0, gain_error = 0, a_error = 0, b_error = 0;
};
SplitRun split_mlp(const MeetingPoints& meet, Outside outside, const ExerciseLibrary* exercise);

}  // namespace ranklab::lesson
