// Detects lost output on stdout. A program that reads the output must not mistake a part for the whole, so a command
// that could not write all of it ends with a separate exit code (ErrorKind::kOutputLost). Thread rule: pure.
#pragma once
#include <cstdio>
#include <string>

namespace ranklab {

// Flushes `out`; "" if everything printed to it was written, else a message.
std::string lost_text(FILE* out);

}  // namespace ranklab
