// A comparison of two runs, for people and for programs. Thread rule: main thread.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/parity/microscope.h"

namespace ranklab {

std::string parity_text(const ParityResult& result);
nlohmann::ordered_json parity_json(const ParityResult& result);
// "3.2e+05 eps"
std::string eps_text(double eps);

}  // namespace ranklab
