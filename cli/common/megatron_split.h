// Megatron-LM's --split: the shares of the data for training, validation and test. The test share is not split off
// here. Torch-free. Thread rule: pure functions.
#pragma once
#include <optional>
#include <string>

namespace ranklab {

struct MegatronSplit {
  std::string validation;  // shares of all data, in the form of --validation-fraction
  std::string test;        // "0": none
};

// Parses "949,50,1" or "95,5"; returns nothing if the text is not such a list.
std::optional<MegatronSplit> parse_megatron_split(const std::string& text);

}  // namespace ranklab
