// Changes a profile as described by a short text, to see what another machine would do: "nvlink=2x,nic=12.5". Thread
// rule: pure.
#pragma once
#include <string>

#include "core/sim/hardware_profile.h"

namespace ranklab {

// The names of the software costs that can be changed: "launches, beside, ..." (the factors and terms of software.h).
std::string what_if_terms();

// A comma-separated list of changes. A change names a software cost (what_if_terms()), or peak, memory, nvlink or nic,
// and is written "NAME=NUMBERx" (the profile's value times the number) or "NAME=NUMBER". Units: launches, message-start
// and pieces in microseconds, cublas-workspace in MiB, launch-blocking 0 or 1; the machine's rates in GB/s (peak:
// TFLOP/s in 16 bits, other dtypes in proportion). 0 turns off launches, message-start, pieces, launch-blocking,
// beside, slowest and the workspaces; 1 turns off the other costs. Costs of time (all but the workspaces) apply only
// with measured kernels. Measured rates change in proportion to the machine's. Throws kInvalidArgument.
void apply_what_if(HardwareProfile& profile, const std::string& text);

}  // namespace ranklab
