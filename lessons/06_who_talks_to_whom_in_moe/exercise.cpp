// Lesson 6, exercise: write the trip to the experts and back, and the rule that keeps experts equally busy.
//
// Eight ranks, one expert on each. Every token of a rank goes to two experts, wherever they live:
//
//   dispatch     count how many copies go to each rank, and tell each rank how many to expect; put the copies into one
//                buffer, those for rank 0 first; one all_to_all carries them all
//   (the expert works on the rows of its inbox; you get as many rows back, in the same order)
//   combine      the same trip backwards: what came from rank r goes back to rank r. Then each token adds up its two
//                copies, each times its weight
//   update_bias  an expert with more than the mean of ALL ranks' copies loses `speed`, one with less gains it
//
// A rank may have no tokens, and an expert may get none: they still take part in every call.
//
// What you have (lesson_api.h, exercise.h):
//   ep.rank()  ep.size()  ep.all_reduce(span)
//   ep.all_to_all(out, send, in, recv): `send` and `recv` count numbers (not rows) for each rank, rank 0 first
//   row(rows, i, hidden) is the i-th row
//
// Check with:  ranklab lesson check 6
#include "exercise.h"

using namespace ranklab::lesson;

// ---- your turn: all three functions ----

extern "C" void dispatch([[maybe_unused]] Comm& ep, [[maybe_unused]] const Routing& routing,
                         [[maybe_unused]] size_t hidden, [[maybe_unused]] std::span<const double> x,
                         [[maybe_unused]] Trip& trip) {}

extern "C" void combine([[maybe_unused]] Comm& ep, [[maybe_unused]] const Routing& routing,
                        [[maybe_unused]] size_t hidden, [[maybe_unused]] const Trip& trip,
                        [[maybe_unused]] std::span<const double> y, [[maybe_unused]] std::span<double> out) {}

extern "C" void update_bias([[maybe_unused]] Comm& ep, [[maybe_unused]] std::span<const double> load,
                            [[maybe_unused]] double speed, [[maybe_unused]] std::span<double> bias) {}

// ---- end of your turn ----
