// The distance between the marks of an axis. Thread rule: pure.
#pragma once

namespace ranklab::viz {

// 1, 2 or 5 times a power of ten, so that at most `marks` fit into `length`. REQUIRES: length > 0, marks > 0.
double nice_step(double length, int marks);

}  // namespace ranklab::viz
