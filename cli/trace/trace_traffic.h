// The traffic as JSON, for `trace stats`. Thread rule: pure.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "viz/model/tables/traffic_matrix.h"

namespace ranklab {

// Totals, and a row for each purpose; also by node if the size of nodes is known.
nlohmann::ordered_json traffic_json(const viz::TraceStore& store, const viz::Window& window);
// Logical bytes from each rank to each other rank, with totals; null above 64 ranks.
nlohmann::ordered_json matrix_json(const viz::TrafficMatrix& matrix);

}  // namespace ranklab
