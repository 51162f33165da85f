// Numbers as single characters that show how dark or how high they are. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "lessons/screen.h"

namespace ranklab::lesson {

// A share from 0 to 1 as one of · ░ ▒ ▓ █. "·" is exactly zero; "?" is NaN or a negative number.
std::string heat(double share);
// A share from 0 to 1 as one of ▁ ▂ ▃ ▄ ▅ ▆ ▇ █.
std::string height(double share);

// A matrix as a picture of rows "r0 ░░▓▓..": a cell is two columns wide, and as dark as its share of `most`.
Cells heat_matrix(const std::string& title, const std::vector<std::vector<double>>& matrix, double most);
double largest(const std::vector<std::vector<double>>& matrix);

// The owner of each of `count` elements as one digit: "00001111"; · means nobody, * several. owned[rank]: its elements;
// those beyond `count` are left out.
std::string owners(const std::vector<std::vector<size_t>>& owned, size_t count);

}  // namespace ranklab::lesson
