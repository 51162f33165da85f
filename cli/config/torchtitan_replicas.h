// The replica groups of a torchtitan configuration that train on their own between synchronizations (torchft's DiLoCo
// and local SGD). torchtitan starts one job for each. Torch-free. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cli/config/torchtitan_words.h"

namespace ranklab {

struct TitanReplicas {
  int64_t groups = 1;
  std::vector<std::pair<std::string, std::string>> settings = {};  // by key; empty: gradients are reduced in every step
};
// Throws kInvalidArgument for a method without its number of groups.
TitanReplicas titan_replicas(const TorchtitanWords& words);

}  // namespace ranklab
