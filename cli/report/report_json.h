// The content of `report` as JSON. Thread rule: pure.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "viz/model/run/run_facts.h"

namespace ranklab {

nlohmann::ordered_json report_json(const viz::RunFacts& run);
// {"optim.lr": {"a": "0.001", "b": null}}: the settings that differ; null if a run has no record.
nlohmann::ordered_json differences_json(const viz::RunFacts& a, const viz::RunFacts& b);

}  // namespace ranklab
