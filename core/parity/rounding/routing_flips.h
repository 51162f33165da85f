// Tokens that two runs route to different experts. If two experts' scores are nearly equal, rounding decides to which
// of them a token goes. What each run decided follows from its router's inputs, weights and biases, which are compared
// themselves. Thread rule: pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/parity/parity_record.h"

namespace ranklab {

// The place of an expert's parameter: "layers.1.mlp", 3 and "up.weight" for "layers.1.mlp.experts.3.up.weight".
struct ExpertPlace {
  std::string layer;
  int64_t expert = 0;
  std::string parameter = {};
  std::string of(int64_t other) const { return layer + ".experts." + std::to_string(other) + "." + parameter; }
};
std::optional<ExpertPlace> expert_place(const std::string& parameter);

struct RoutingFlips {
  std::vector<int64_t> tokens;   // number of tokens of each expert in the reference
  std::vector<int64_t> flipped;  // number of assignments to each expert that only one of the two runs has
};
// The flips of a layer in one step; nothing if a record lacks what decides the routing.
std::optional<RoutingFlips> routing_flips(const ParityRecord& got, const ParityRecord& want, int64_t step,
                                          const std::string& layer);

}  // namespace ranklab
