// Constants of a hardware profile that fit what was timed, with the time models of core/sim themselves. Thread rule:
// pure.
#pragma once
#include <string>
#include <vector>

#include "core/sim/fit_constants.h"
#include "core/sim/hardware_points.h"
#include "core/sim/hardware_profile.h"

namespace ranklab {

// One line of the result: a third of the points of a row is not fitted where there are enough, and held to the fit.
struct FitRow {
  std::string table, what;  // "kernels.gemm_16bit", "products"
  size_t points = 0;
  bool held_out = false;
  FitError error;
};

// REQUIRES: `profile` has peaks and bandwidth. Fills in its kernels, and collectives where some were timed.
std::vector<FitRow> fit_profile(HardwareProfile& profile, const HardwarePoints& points);

}  // namespace ranklab
