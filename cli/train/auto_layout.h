// `train --layout auto`: the layout that plans predict to be fastest on the run's world and hardware profile. What the
// user gave stays; a run that resumes in a world of the same size keeps its checkpoint's layout. Every process of a run
// makes the same choice. Thread rule: main thread.
#pragma once
#include <string>

#include "cli/config/config_options.h"

namespace ranklab {

// Sets the layout in `options`. RETURNS: one line that says what was chosen and why. Throws kInvalidArgument.
std::string choose_layout(ConfigOptions& options);

}  // namespace ranklab
