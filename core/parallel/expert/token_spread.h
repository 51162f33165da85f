// The expected destinations of tokens with unknown routing (meta tensors). A deduplicating dispatcher sends a token
// once to a node or rank that has experts of it: with K of E experts chosen uniformly, to a place that has n of them
// with the chance 1 - C(E - n, K) / C(E, K); if routing is limited to g of G groups, the same among the places of g
// groups. With forced balance a token's experts are consecutive. Torch-free. Cost: K products. Thread rule: pure.
#pragma once
#include <cstdint>
#include <vector>

#include "core/spec/moe_config.h"

namespace ranklab {

// Of a place with `own` consecutive experts.
double chance_of_place(const MoeConfig& moe, int64_t own);

// Splits `count` into nearly equal parts, the first ones one larger if it does not divide.
std::vector<int64_t> even_parts(int64_t count, int64_t parts);

// Each row goes to each of these places with its chance.
struct RowSpread {
  std::vector<int64_t> places = {};
  std::vector<double> chances = {};

  void add(int64_t place, double chance) {
    places.push_back(place);
    chances.push_back(chance);
  }
  double copies() const;  // of a row, on average
  // Splits so many copies of rows among the places.
  std::vector<int64_t> parts(int64_t copies_of_all) const;
};
RowSpread spread_over_ranks(const MoeConfig& moe, int ranks);

}  // namespace ranklab
