// What becomes of the text on stdout. A program that reads it must not take a part for the whole, so who could not
// write all of it ends with an exit code of its own (ErrorKind::kOutputLost). Thread rule: pure.
#pragma once
#include <cstdio>
#include <string>

namespace ranklab {

// Flushes `out`; "" if all that was ever printed to it is written, else a message.
std::string lost_text(FILE* out);

}  // namespace ranklab
