// `train --layout auto`: the layout that plans say is fastest on the run's world and hardware profile. What the user
// gave stays; a run that resumes in a world of the same size keeps the layout of its checkpoint. Each process of a run
// comes to the same choice. Thread rule: main thread.
#pragma once
#include <string>

#include "cli/config/config_options.h"

namespace ranklab {

// Settles the layout among `options`. RETURNS: what was chosen and why, a line. Throws kInvalidArgument.
std::string choose_layout(ConfigOptions& options);

}  // namespace ranklab
