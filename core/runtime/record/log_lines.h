// Keeps the lines that an earlier run left in a log file, except those that a run resumed at `first_step` will write
// again, so that the curve of a killed and resumed run has no gap or overlap. Cost: the file is read and written once.
// Thread rule: pure.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace ranklab {

// The step to which a line belongs; -1: none, the line is dropped.
using StepOfLine = std::function<int64_t(const std::string& line)>;

// A last line without a newline is incomplete and is dropped. Without a file, nothing happens. Throws kIo.
void keep_lines_before(const std::string& path, int64_t first_step, const StepOfLine& step_of);

}  // namespace ranklab
