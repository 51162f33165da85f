// Reads published measurements in the file formats of their collections and returns them as rows for measured_runs.h:
// Megatron-LM's functional tests with their golden values (memory of the last pipeline stage), BLOOM's sweep of
// layouts, and the throughput tables of InternEvo and llm-foundry. Thread rule: pure. Torch-free.
#pragma once
#include <nlohmann/json.hpp>
#include <vector>

namespace ranklab {

// The rows of a file in any of these formats; empty if it has none.
std::vector<nlohmann::json> measured_rows(const nlohmann::json& file);

}  // namespace ranklab
