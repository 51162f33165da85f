// What `report` shows, as JSON. Thread rule: pure.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "viz/model/run/run_facts.h"

namespace ranklab {

nlohmann::ordered_json report_json(const viz::RunFacts& run);

}  // namespace ranklab
