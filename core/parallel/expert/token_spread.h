// The expected destinations of tokens whose routing is unknown (meta tensors). A deduplicating dispatcher sends a token
// once to each node or rank that has experts of it. If K of E experts are chosen uniformly, a place with n experts is
// among the destinations with probability 1 - C(E - n, K) / C(E, K); if routing is limited to g of G groups, the same
// holds among the places of g groups. With forced balance a token's experts are consecutive. Torch-free. Cost: K
// products. Thread rule: pure.
#pragma once
#include <cstdint>
#include <vector>

#include "core/spec/moe_config.h"

namespace ranklab {

// The probability that a token goes to a place with `own` consecutive experts.
double chance_of_place(const MoeConfig& moe, int64_t own);

// A row goes to each of these places with the corresponding probability.
struct RowSpread {
  std::vector<int64_t> places = {};
  std::vector<double> chances = {};

  void add(int64_t place, double chance) {
    places.push_back(place);
    chances.push_back(chance);
  }
  double copies() const;  // expected number of copies per row
  // Distributes this many copies of rows over the places.
  std::vector<int64_t> parts(int64_t copies_of_all) const;
};
RowSpread spread_over_ranks(const MoeConfig& moe, int ranks);

}  // namespace ranklab
