// On how many nodes or ranks a token's experts lie, which is how often a deduplicating dispatcher sends it, where
// nobody knows which experts those are (tensors of shapes): of P equal places of E experts, with K of them chosen
// evenly, P (1
// - C(E - E/P, K) / C(E, K)) on average; with a limit of g of G groups the same among the places of g groups. Experts
// in turn (forced balance) lie side by side. Torch-free. Cost: K products. Thread rule: pure.
#pragma once
#include <cstdint>
#include <vector>

#include "core/model/moe_config.h"

namespace ranklab {

// REQUIRES: places divides num_experts.
double expected_places(const MoeConfig& moe, int64_t places);

// Where rows go whose experts nobody knows: each to so many of these places on average, to all of them equally often.
struct EvenSpread {
  double copies = 1;
  std::vector<int64_t> places = {};
};

}  // namespace ranklab
