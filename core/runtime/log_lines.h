// The lines that an earlier run left in a file of its log, as far as a run that goes on at `first_step` does not write
// them again: so that the curve of a run that was killed and resumed is whole. Cost: the file is read and written once.
// Thread rule: pure.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace ranklab {

// The step that a line belongs to; -1: none, the line is dropped.
using StepOfLine = std::function<int64_t(const std::string& line)>;

// A last line without its end was cut off and is dropped. No file: nothing. Throws kIo.
void keep_lines_before(const std::string& path, int64_t first_step, const StepOfLine& step_of);

}  // namespace ranklab
