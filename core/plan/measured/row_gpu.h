// Determines on which hardware profile (core/sim/profiles) a published run is planned, from what its row says of its
// GPUs. Thread rule: any thread.
#pragma once
#include <string>

namespace ranklab {

// RETURNS: the profile's name; null if there is none of that GPU.
const char* profile_of_gpu(const std::string& gpu_type);

}  // namespace ranklab
