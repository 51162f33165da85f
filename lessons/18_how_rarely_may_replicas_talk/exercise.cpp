// Lesson 18, exercise: bring replicas together that have trained on their own.
//
// Eight ranks start from the same parameters, `outer`. Each takes several steps on samples of its own, which lead to
// different parameters, `own`. Then this function is called on all of them:
//
//   gradient   the mean over all replicas of how far they are from outer; its sign is that of a gradient,
//              so that a step against it goes where the replicas went
//   momentum   momentum = rule.momentum * momentum + gradient
//   step       outer -= rule.lr * momentum; with rule.nesterov the momentum looks one step ahead:
//              outer -= rule.lr * (gradient + rule.momentum * momentum)
//   own        continues from outer
//
// What you have (lesson_api.h, exercise.h):
//   rule.lr  rule.momentum  rule.nesterov      comm.size()   comm.all_reduce(span)
//
// Check with:  ./ranklab lesson check 18
#include "exercise.h"

#include <vector>

using namespace ranklab::lesson;

// ---- your turn ----

extern "C" void outer_update([[maybe_unused]] Comm& comm, [[maybe_unused]] std::span<double> outer,
                             [[maybe_unused]] std::span<double> own, [[maybe_unused]] std::span<double> momentum,
                             [[maybe_unused]] const OuterRule& rule) {}

// ---- end of your turn ----
