// The run's secret as users give it: a file, or an environment variable. A short one is guessed by whoever can reach
// the rendezvous. Thread rule: pure.
#pragma once
#include <string>

namespace ranklab {

// The token, if it is one; else throws kInvalidArgument. `where`: the flag or variable it came from.
std::string checked_run_token(const std::string& token, const std::string& where);
// Of RANKLAB_RUN_TOKEN; empty when it is not set. Throws kInvalidArgument.
std::string run_token_of_environment();

}  // namespace ranklab
