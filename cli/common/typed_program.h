// What a user in this folder types to start this program again: "ranklab" if the shell finds it, else "./ranklab", or
// another path. Texts name commands as `ranklab ...`, in backticks. Thread rule: pure queries.
#pragma once
#include <string>

namespace ranklab {

// How to type the file that ./ranklab passed (RANKLAB_DRIVER); else the ./ranklab that belongs to this program's build;
// else the program.
std::string typed_program();
// Replaces each `ranklab ...` in backticks by what must be typed.
std::string as_typed(std::string text);

}  // namespace ranklab
