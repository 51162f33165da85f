// The hardware profiles compiled into the library: one TOML file each in core/sim/profiles/, listed in
// core/sim/CMakeLists.txt. Thread rule: constant data.
#pragma once
#include <span>
#include <string_view>

namespace ranklab {

struct BuiltInProfile {
  std::string_view name;
  std::string_view toml;
};

std::span<const BuiltInProfile> built_in_profiles();

}  // namespace ranklab
