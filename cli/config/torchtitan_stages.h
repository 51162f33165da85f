// The pipeline stages of a torchtitan configuration, which lists the modules of each stage
// (parallelism.module_fqns_per_model_part) or the modules with which stages begin (pipeline_parallel_split_points).
// Torch-free. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "cli/config/torchtitan_words.h"

namespace ranklab {

// The number of layers in each stage; nothing if the configuration does not list stages. Throws kInvalidArgument for
// names that do not divide a chain of `layers` layers.
std::optional<std::vector<int64_t>> titan_stages(const TorchtitanWords& words, int64_t layers);

}  // namespace ranklab
