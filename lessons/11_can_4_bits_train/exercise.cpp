// Lesson 11, exercise: round to 4 bits, twice.
//
//   kE2M1:   0   0.5   1   1.5   2   3   4   6        and their negatives
//
// `mx_scale`: OCP's rule for MXFP4. The largest magnitude of the block is m * 2^k with m from 1 up to 2; the largest
// number of the format is 6 = 1.5 * 2^2. The scale is 2^(k - 2): afterwards the block's largest number lies between 4
// and 8 (and what is above 6 saturates). A block of zeros: 1.
//
// `stochastic`: a number between two neighbours a < x < b becomes b with the chance (x - a) / (b - a), else a. Then it
// is right on average. A negative number is the mirror image of its positive one. Beyond 6: 6.
//
// Check with:  ./ranklab lesson check 11
#include "exercise.h"

#include <cmath>

using namespace ranklab::lesson;

// ---- your turn: all three functions ----

extern "C" double mx_scale([[maybe_unused]] std::span<const double> block) { return 1; }

extern "C" double nearest(double x) { return x; }

extern "C" double stochastic(double x, [[maybe_unused]] double draw) { return x; }

// ---- end of your turn ----
