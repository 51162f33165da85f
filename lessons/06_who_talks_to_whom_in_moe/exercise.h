// Lesson 6: dispatching tokens to experts on other ranks and combining the results; and balancing the router.
#pragma once
#include <cstddef>
#include <vector>

#include "../lesson_api.h"

namespace ranklab::lesson {

constexpr size_t kChoices = 2;  // experts per token

// The router's decision for this rank's tokens. Both lists have tokens x 2 entries, one for each copy: copies 2 t and
// 2 t + 1 are those of token t (copy c is of token c / kChoices). They go to two different experts; expert e is on rank
// e, so the number is also that of the rank. Weights are the router's, and are not needed before combine().
struct Routing {
  std::span<const int> expert;     // [tokens x 2]: where each copy goes
  std::span<const double> weight;  // [tokens x 2]: how much its result counts

  size_t tokens() const { return expert.size() / kChoices; }
};

// Describes the dispatched token copies: dispatch() fills it in, combine() needs it for the way back. All four lists
// are empty at first. The check looks at the inbox; the other three are only for your two functions. Counts are in
// rows; a row is the `hidden` numbers of one copy.
struct Trip {
  std::vector<size_t> send_rows;  // [ranks]: how many rows this rank sends to each, itself included
  std::vector<size_t> recv_rows;  // [ranks]: how many it gets from each, itself included
  std::vector<size_t> place;      // [tokens x 2]: which row of what was sent is copy c
  std::vector<double> inbox;      // [rows received x hidden]: those from rank 0 first, then those from rank 1, ...
};

// Row `i` of rows of `hidden` numbers each.
inline std::span<const double> row(std::span<const double> rows, size_t i, size_t hidden) {
  return rows.subspan(i * hidden, hidden);
}
inline std::span<double> row(std::span<double> rows, size_t i, size_t hidden) {
  return rows.subspan(i * hidden, hidden);
}

}  // namespace ranklab::lesson

extern "C" {
// Warm-up. rows [ranks] comes with zeros: how many copies of this rank's tokens go to each rank.
void count_copies(const ranklab::lesson::Routing& routing, std::span<size_t> rows);
// x [tokens x hidden]: this rank's tokens, one row each. When it returns, each copy is in the inbox of its expert's
// rank: among rows from the same rank the order is yours to choose.
void dispatch(ranklab::lesson::Comm& ep, const ranklab::lesson::Routing& routing, size_t hidden,
              std::span<const double> x, ranklab::lesson::Trip& trip);
// y [rows received x hidden]: the expert's output for trip.inbox, row by row. out [tokens x hidden], of unknown
// content: becomes, for each token of this rank, the sum of weight x output row over its two copies.
void combine(ranklab::lesson::Comm& ep, const ranklab::lesson::Routing& routing, size_t hidden,
             const ranklab::lesson::Trip& trip, std::span<const double> y, std::span<double> out);
// load [experts]: how many of this rank's copies each expert got in the step just finished. bias [experts]: what the
// router adds to its scores before it chooses; it comes with the values of the last step, equal on all ranks. Change
// each by +speed, -speed or not at all: they must stay equal on all ranks.
void update_bias(ranklab::lesson::Comm& ep, std::span<const double> load, double speed, std::span<double> bias);
}
