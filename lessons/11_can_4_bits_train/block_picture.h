// Pictures of numbers in 4 bits, in blocks that share a scale. Thread rule: pure.
#pragma once
#include <span>

#include "lessons/screen.h"

namespace ranklab::lesson {

// Draws 32 normal numbers, one of them large, with one scale and with two.
void draw_blocks(Screen& screen);
// Draws blocks of normal numbers with the learner's scale and rounding, and with the correct ones.
void draw_yours(Screen& picture, double (*scale)(std::span<const double>), double (*round)(double));
// For numbers from 0 to 6: how many of 64 draws give the upper neighbour, as a height.
void draw_chances(Screen& picture, double (*draw)(double, double));

}  // namespace ranklab::lesson
