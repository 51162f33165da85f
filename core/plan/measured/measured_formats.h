// Published measurements in the files of their collections, as rows of measured_runs.h: Megatron-LM's functional tests
// with their golden values (memory of the last pipeline stage), BLOOM's sweep of layouts, InternEvo's and llm-foundry's
// tables of throughput. Thread rule: pure. Torch-free.
#pragma once
#include <nlohmann/json.hpp>
#include <vector>

namespace ranklab {

// The rows of a file, whichever of these it is; nothing if it has none.
std::vector<nlohmann::json> measured_rows(const nlohmann::json& file);

}  // namespace ranklab
