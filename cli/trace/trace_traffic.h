// Traffic as the JSON of `trace stats`. Thread rule: pure.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "viz/model/tables/traffic_matrix.h"

namespace ranklab {

// Sums, and a row for each purpose; by node if their size is known.
nlohmann::ordered_json traffic_json(const viz::TraceStore& store, const viz::Window& window);
// Logical bytes from each rank to each other, with the sums; null above 64 ranks.
nlohmann::ordered_json matrix_json(const viz::TrafficMatrix& matrix);

}  // namespace ranklab
