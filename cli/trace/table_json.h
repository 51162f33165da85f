// Tables of a trace as JSON, for `trace stats` and `report`. Thread rule: pure.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "viz/model/insights/insight.h"
#include "viz/model/tables/bubbles.h"
#include "viz/model/tables/expert_load.h"

namespace ranklab {

nlohmann::ordered_json split_json(const viz::TimeSplit& time);
nlohmann::ordered_json insights_json(const viz::TraceStore& store, const std::vector<viz::Insight>& insights);
// The load of one layer, in one step or in all steps. `peers`: the number of ranks over which its experts are spread.
nlohmann::ordered_json load_json(const viz::LayerLoad& load, int peers);

}  // namespace ranklab
