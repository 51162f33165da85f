// The expected destinations of tokens with unknown routing (meta tensors), evenly spread. A deduplicating dispatcher
// sends a token once per node or rank that has experts of it: with E experts on P equal places and K of them chosen
// uniformly, to P (1 - C(E - E/P, K) / C(E, K)) places on average; if routing is limited to g of G groups, the same
// among the places of g groups. With forced balance a token's experts are consecutive. Torch-free. Cost: K products.
// Thread rule: pure.
#pragma once
#include <cstdint>
#include <vector>

#include "core/spec/moe_config.h"

namespace ranklab {

// REQUIRES: places divides num_experts.
double expected_places(const MoeConfig& moe, int64_t places);

// Splits `count` into nearly equal parts, the first ones one larger if it does not divide.
std::vector<int64_t> even_parts(int64_t count, int64_t parts);

// Each row goes to `copies` of these places on average, to all of them equally often.
struct EvenSpread {
  double copies = 1;
  std::vector<int64_t> places = {};
};
EvenSpread spread_over_ranks(const MoeConfig& moe, int ranks);

}  // namespace ranklab
