// `ranklab train --json`: prints a line per logged step as in metrics.jsonl, then one object with the result. If a run
// fails, main() prints its error object instead.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cli/train/console.h"

namespace ranklab {

std::shared_ptr<Hook> make_json_hook(ConsoleOptions options);
// The last object of a run that was ended by SIGINT or SIGTERM.
std::string json_interrupted(const nlohmann::ordered_json& data);
std::string json_interrupted();  // before the first step was done

}  // namespace ranklab
