// On how many nodes or ranks a token's experts lie, which is how often a deduplicating dispatcher sends it: of P equal
// places of E experts, with K of them chosen evenly, P (1 - C(E - E/P, K) / C(E, K)) on average; with a limit of g of G
// groups the same among the places of g groups. Experts in turn (forced balance) lie side by side. Cost: K products.
// Thread rule: pure.
#pragma once
#include <cstdint>

#include "core/plan/step_shape.h"

namespace ranklab {

// REQUIRES: places divides num_experts.
double expected_places(const MoeConfig& moe, int64_t places);
// Copies of a rank's tokens that this makes.
int64_t token_copies(const StepShape& shape, int64_t places);
// Elements of a token that travels with its weights and experts (core/parallel/expert/packed_tokens.h).
int64_t packed_width(const StepShape& shape);

}  // namespace ranklab
