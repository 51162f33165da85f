// Lesson 6, exercise: write the trip to the experts and back, and the rule that keeps experts equally busy.
//
// Eight ranks, one expert on each. Every token of a rank goes to two experts, on any ranks:
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
//   ep.rank()  ep.size()
//   ep.all_reduce(span<double>)    in place: afterwards every rank has the sum
//   ep.all_to_all(out, send, in, recv)
//       out   span<const double>   what this rank sends: all that goes to rank 0, then all that goes to rank 1, ...
//       send  span<const size_t>   [ranks]: how many numbers (not rows: rows x hidden) of it go to each rank
//       in    span<double>         what comes, as long as it will be: what rank 0 sent first
//       recv  span<const size_t>   [ranks]: how many numbers come from each; must be what that rank sends
//     A std::vector may be given for each of the four. Numbers are doubles: convert counts to them to send them.
//   row(rows, i, hidden)           the i-th row of a span of rows, as a span; of a vector: row(std::span(v), i, hidden)
//
// At most three all_to_alls in all: counts, rows there, rows back. With 2 ranks, hidden 1, and one token on each, whose
// copies go to experts 1 and 0:  rank 0 sends {x0 (to rank 0), x0 (to rank 1)}, send = recv = {1, 1}, place = {1, 0},
// and its inbox is {x0, x1}.
//
// Check with:  ./ranklab lesson check 6
#include "exercise.h"

using namespace ranklab::lesson;

// ---- warm-up: one loop of two lines. rows[r] is how often r occurs in routing.expert ----
extern "C" void count_copies([[maybe_unused]] const Routing& routing, [[maybe_unused]] std::span<size_t> rows) {}

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
