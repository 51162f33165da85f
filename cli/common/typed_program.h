// What somebody in this folder types to start this program again: "ranklab" where the shell finds it, else "./ranklab",
// or another path. Texts name commands as `ranklab ...`, in backticks. Thread rule: pure queries.
#pragma once
#include <string>

namespace ranklab {

// The file that ./ranklab named (RANKLAB_DRIVER); else the ./ranklab beside the build that this program is from; else
// the program.
std::string typed_program();
// Each `ranklab ...` in backticks as it must be typed.
std::string as_typed(std::string text);

}  // namespace ranklab
