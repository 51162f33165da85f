// Megatron-LM's --split: the parts of the data for training, validation and test, of which the last is not split off
// here. Torch-free. Thread rule: pure functions.
#pragma once
#include <optional>
#include <string>

namespace ranklab {

struct MegatronSplit {
  std::string validation;  // shares of all, as --validation-fraction takes them
  std::string test;        // "0": none
};

// "949,50,1" or "95,5"; none: it is no list of parts.
std::optional<MegatronSplit> parse_megatron_split(const std::string& text);

}  // namespace ranklab
