// The training run that shows an exhibit of the museum, given as flags: the common flags (a model that trains in about
// a second), followed by the exhibit's own. Torch-free. Thread rule: pure functions.
#pragma once
#include <string>
#include <vector>

#include "core/config/train_config.h"
#include "core/museum/exhibit.h"

namespace ranklab {

// "--tp", "2", ...: each flag once. `folder` replaces {folder} in the flags.
std::vector<std::string> exhibit_flags(const Exhibit& exhibit, const std::string& folder = "{folder}");
// The flags of the run that comes before the exhibit's own, without the bug. REQUIRES: exhibit.before is not empty.
std::vector<std::string> flags_before(const Exhibit& exhibit, const std::string& folder = "{folder}");

// The configuration that `ranklab train` makes from these flags. Throws kInvalidArgument.
TrainConfig config_of_flags(const std::vector<std::string>& flags);

}  // namespace ranklab
