// Changes a profile by a few words, to see what another machine would do: "nvlink=2x,nic=12.5". Thread rule: pure.
#pragma once
#include <string>

#include "core/sim/hardware_profile.h"

namespace ranklab {

// What software costs, by the names that a change has: "launches, beside, ..." (the factors and terms of software.h).
std::string what_if_terms();

// A list with commas of what software costs (what_if_terms(); launches, message-start and pieces in microseconds,
// cublas-workspace in MiB, launch-blocking 0 or 1; 0 switches these, beside and slowest off, 1 other times; times with
// measured kernels alone), or of peak, memory, nvlink or nic, each "= NUMBERx", times the profile's, or "= NUMBER" in
// GB/s (peak: TFLOP/s in 16 bits, others in proportion). Measured rates change with it. Throws kInvalidArgument.
void apply_what_if(HardwareProfile& profile, const std::string& text);

}  // namespace ranklab
