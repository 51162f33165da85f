// Pipeline stages of a configuration of torchtitan that names the modules of each
// (parallelism.module_fqns_per_model_part) or those that stages begin with (pipeline_parallel_split_points).
// Torch-free. Thread rule: pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "cli/config/torchtitan_words.h"

namespace ranklab {

// The layers of each stage; nothing where it names none. Throws kInvalidArgument for names that do not cut a chain of
// `layers` layers.
std::optional<std::vector<int64_t>> titan_stages(const TorchtitanWords& words, int64_t layers);

}  // namespace ranklab
