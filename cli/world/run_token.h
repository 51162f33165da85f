// The run's secret as given by users: a file, or an environment variable. A short one could be guessed by anyone who
// can reach the rendezvous. Thread rule: pure.
#pragma once
#include <string>

namespace ranklab {

// RETURNS: the token if it is valid; else throws kInvalidArgument. `where`: the flag or variable that it came from.
std::string checked_run_token(const std::string& token, const std::string& where);
// The token in RANKLAB_RUN_TOKEN; empty if it is not set. Throws kInvalidArgument.
std::string run_token_of_environment();

}  // namespace ranklab
