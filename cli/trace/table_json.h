// Tables of a trace as JSON, for `trace stats` and `report`. Thread rule: pure.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "viz/model/insights/insight.h"
#include "viz/model/tables/bubbles.h"
#include "viz/model/tables/expert_load.h"

namespace ranklab {

nlohmann::ordered_json split_json(const viz::TimeSplit& time);
nlohmann::ordered_json insights_json(const viz::TraceStore& store, const std::vector<viz::Insight>& insights);
// One layer, in one step or in all. `peers`: the ranks that its experts are on.
nlohmann::ordered_json load_json(const viz::LayerLoad& load, int peers);

}  // namespace ranklab
