// Numbers as single characters: how dark, how high. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "lessons/screen.h"

namespace ranklab::lesson {

// A share of 0 to 1 as one of · ░ ▒ ▓ █; "·" is exactly nothing, and what is not a number, or is negative, "?".
std::string heat(double share);
// A share of 0 to 1 as one of ▁ ▂ ▃ ▄ ▅ ▆ ▇ █.
std::string height(double share);

// A matrix as a picture of rows "r0 ░░▓▓..": a cell is two columns wide, and as dark as its share of `most`.
Cells heat_matrix(const std::string& title, const std::vector<std::vector<double>>& matrix, double most);
double largest(const std::vector<std::vector<double>>& matrix);

// Who owns each of `count` elements, a digit each: "00001111"; · nobody, * several. owned[rank]: its elements, of which
// those beyond `count` are left out.
std::string owners(const std::vector<std::vector<size_t>>& owned, size_t count);

}  // namespace ranklab::lesson
