// Pictures of how numbers are distributed, and which numbers 8-bit formats have. Thread rule: pure.
#pragma once
#include <vector>

#include "lessons/screen.h"

namespace ranklab::lesson {

// By powers of two: normal numbers with these deviations, and how many numbers E4M3 and E5M2 have there.
void draw_ranges(Screen& screen, const std::vector<double>& deviations);
// Which number of E4M3 each number is rounded to: by `yours`, and correctly.
void draw_steps(Screen& picture, double (*yours)(double));

}  // namespace ranklab::lesson
