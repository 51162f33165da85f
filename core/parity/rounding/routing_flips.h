// Tokens that two runs send to other experts. Where an expert's score is nearly another's, rounding decides which of
// them a token goes to; what each run decided follows from its router's inputs, weights and biases, which are compared
// as such. Thread rule: pure.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/parity/parity_record.h"

namespace ranklab {

// Where the parameter of an expert is: "layers.1.mlp", 3 and "up.weight" of "layers.1.mlp.experts.3.up.weight".
struct ExpertPlace {
  std::string layer;
  int64_t expert = 0;
  std::string parameter = {};
  std::string of(int64_t other) const { return layer + ".experts." + std::to_string(other) + "." + parameter; }
};
std::optional<ExpertPlace> expert_place(const std::string& parameter);

struct RoutingFlips {
  std::vector<int64_t> tokens;   // of each expert in the reference
  std::vector<int64_t> flipped;  // assignments to each expert that only one of the runs has
};
// Of a layer in one step; nothing where a record does not have what decides it.
std::optional<RoutingFlips> routing_flips(const ParityRecord& got, const ParityRecord& want, int64_t step,
                                          const std::string& layer);

}  // namespace ranklab
