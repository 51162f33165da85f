// Where tokens go when nobody knows their experts (tensors of shapes), so that all get equally many. On how many nodes
// or ranks a token's experts lie is how often a deduplicating dispatcher sends it: of P equal places of E experts, with
// K of them chosen evenly, P (1 - C(E - E/P, K) / C(E, K)) on average; with a limit of g of G groups the same among the
// places of g groups. Experts in turn (forced balance) lie side by side. Torch-free. Cost: K products. Thread rule:
// pure.
#pragma once
#include <cstdint>
#include <vector>

#include "core/spec/moe_config.h"

namespace ranklab {

// REQUIRES: places divides num_experts.
double expected_places(const MoeConfig& moe, int64_t places);

// `count` things in equal parts, the first ones one larger where they do not divide.
std::vector<int64_t> even_parts(int64_t count, int64_t parts);

// Each row goes to so many of these places on average, to all of them equally often.
struct EvenSpread {
  double copies = 1;
  std::vector<int64_t> places = {};
};
EvenSpread spread_over_ranks(const MoeConfig& moe, int ranks);

}  // namespace ranklab
