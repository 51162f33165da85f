// Plans of the lesson's model: Llama 3.1 70B in bf16 on H100s, as `ranklab plan run` makes them. Cost: some tenths of a
// second. Thread rule: one thread.
#pragma once
#include <string>

#include "core/plan/search/layout_candidates.h"
#include "lessons/13_choose_a_layout/exercise.h"

namespace ranklab::lesson {

struct LayoutTime {
  double step_s = 0, compute_s = 0, waiting_s = 0, tp_s = 0, other_s = 0;  // the last two: exposed communication
  double bytes = 0;  // on one GPU, including what the software itself uses
  double mfu = 0;
};

Problem problem_of(int gpus, int sequences);
LayoutChoice as_choice(const Layout& layout);
// Throws what a plan throws, for sizes that do not divide.
LayoutTime plan_of(const Problem& problem, const LayoutChoice& layout);
double most_bytes(const Problem& problem);

}  // namespace ranklab::lesson
