// Where the window keeps its layout between runs: $XDG_STATE_HOME/ranklab or ~/.local/state/ranklab. Apart from traces.
// Thread rule: reads the environment.
#pragma once
#include <string>

namespace ranklab::viz {

// Made when it does not exist; "" when that is not possible, and then nothing is kept.
std::string state_folder();

}  // namespace ranklab::viz
