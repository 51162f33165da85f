// Lesson 6: dispatching tokens to experts on other ranks and combining the results; and balancing the router.
#pragma once
#include <cstddef>
#include <vector>

#include "../lesson_api.h"

namespace ranklab::lesson {

constexpr size_t kChoices = 2;  // experts per token

// The router's decision for this rank's tokens: token t goes to expert[2 t] and expert[2 t + 1], which always differ,
// with weight[2 t] and weight[2 t + 1]. Expert e is on rank e.
struct Routing {
  std::span<const int> expert;
  std::span<const double> weight;

  size_t tokens() const { return expert.size() / kChoices; }
};

// Describes the dispatched token copies: dispatch() fills it in, combine() needs it for the way back.
struct Trip {
  std::vector<size_t> send_rows;  // [ranks]: how many copies this rank sends to each
  std::vector<size_t> recv_rows;  // [ranks]: how many it gets from each
  std::vector<size_t> place;      // [tokens x 2]: index of the row sent for the token's first and second copy
  std::vector<double> inbox;      // the received rows, those from rank 0 first: the input of this rank's expert
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
// x [tokens x hidden]: this rank's tokens. When it returns, each copy is in the inbox of its expert's rank.
void dispatch(ranklab::lesson::Comm& ep, const ranklab::lesson::Routing& routing, size_t hidden,
              std::span<const double> x, ranklab::lesson::Trip& trip);
// y: the expert's output for trip.inbox, row by row. out [tokens x hidden]: for each token of this rank the sum of
// weight x row over its two copies.
void combine(ranklab::lesson::Comm& ep, const ranklab::lesson::Routing& routing, size_t hidden,
             const ranklab::lesson::Trip& trip, std::span<const double> y, std::span<double> out);
// load [experts]: how many of this rank's copies each expert got in the step just finished. The router adds `bias` to
// its scores before it chooses: change each by +speed, -speed or not at all.
void update_bias(ranklab::lesson::Comm& ep, std::span<const double> load, double speed, std::span<double> bias);
}
