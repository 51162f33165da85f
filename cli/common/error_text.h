// How an error is printed on stderr. Thread rule: main thread.
#pragma once
#include <string>

namespace ranklab {

// Prints "ranklab: error: ..." on stderr: in one line for programs and files; at a terminal wrapped at words to its
// width, with later lines indented. Commands in backticks are shown as they must be typed.
void print_error(const std::string& message);

}  // namespace ranklab
