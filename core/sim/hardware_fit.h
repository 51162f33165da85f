// Fits the constants of a hardware profile to timings, using the time models of core/sim. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "core/sim/fit_constants.h"
#include "core/sim/hardware_points.h"
#include "core/sim/hardware_profile.h"

namespace ranklab {

// One line of the result. If there are enough points, a third of a row's points are held out of the fit and compared
// with it.
struct FitRow {
  std::string table, what;  // "kernels.gemm_16bit", "products"
  size_t points = 0;
  bool held_out = false;
  FitError error;
};

// REQUIRES: `profile` has peaks and bandwidth. Fills in its kernels, and its collectives if some were timed.
std::vector<FitRow> fit_profile(HardwareProfile& profile, const HardwarePoints& points);

}  // namespace ranklab
