// Lesson 11: a format with sixteen numbers, and blocks that share a scale.
#pragma once
#include <array>
#include <span>

namespace ranklab::lesson {

// The magnitudes of E2M1; each also negative.
constexpr std::array<double, 8> kE2M1 = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
constexpr double kLargest = 6;

}  // namespace ranklab::lesson

extern "C" {
// The scale of a block of MXFP4: a power of two, by OCP's rule. The block's values are divided by it.
double mx_scale(std::span<const double> block);
// The E2M1 number nearest to x, in a tie the one at an even index of kE2M1; beyond 6: 6.
double nearest(double x);
// One of x's two neighbours in E2M1: the nearer x is to the upper one, the more likely. `draw` is uniform in [0, 1).
double stochastic(double x, double draw);
}
