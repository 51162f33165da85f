// A comparison of two runs as text for people and JSON for programs. Thread rule: main thread.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/common/style.h"
#include "core/parity/microscope.h"
#include "viz/model/parity/parity_map.h"

namespace ranklab {

std::string parity_text(const ParityResult& result);
// "DIFFERENT, first in step 0, backward: layers.1.norm grad", and what is known about the cause.
std::string parity_verdict(const ParityResult& result, const Style& style);
std::vector<viz::ParityFact> parity_facts(const ParityResult& result);
nlohmann::ordered_json parity_json(const ParityResult& result);
// "3.2e+05 eps"
std::string eps_text(double eps);

}  // namespace ranklab
