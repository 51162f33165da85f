// The training that shows an exhibit of the museum, from its flags: those of every exhibit (a model that trains in
// about a second), then its own. Torch-free. Thread rule: pure functions.
#pragma once
#include <string>
#include <vector>

#include "core/config/train_config.h"
#include "core/museum/exhibit.h"

namespace ranklab {

// "--tp", "2", ...: each flag once. `folder`: what {folder} stands for.
std::vector<std::string> exhibit_flags(const Exhibit& exhibit, const std::string& folder = "{folder}");
// The training that comes before, which has no bug. REQUIRES: exhibit.before is not empty.
std::vector<std::string> flags_before(const Exhibit& exhibit, const std::string& folder = "{folder}");

// The configuration that `ranklab train` makes of such flags. Throws kInvalidArgument.
TrainConfig config_of_flags(const std::vector<std::string>& flags);

}  // namespace ranklab
