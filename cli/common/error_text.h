// What stderr shows of an error. Thread rule: main thread.
#pragma once
#include <string>

namespace ranklab {

// "ranklab: error: ..." on stderr: one line for programs and files; at a terminal wrapped at words to its width, later
// lines indented. Commands in backticks are shown as they must be typed.
void print_error(const std::string& message);

}  // namespace ranklab
