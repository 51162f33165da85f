// Writes a hardware profile as TOML that load_hardware_profile() reads. Thread rule: pure.
#pragma once
#include <map>
#include <string>

#include "core/sim/hardware_profile.h"

namespace ranklab {

// REQUIRES: kernels and collectives. `remarks`: by table ("kernels.attention"), a comment to write after its name.
std::string profile_toml(const HardwareProfile& profile, const std::map<std::string, std::string>& remarks);

}  // namespace ranklab
