// The keys of torchtitan's configuration, written SECTION.KEY as in its TOML files and on its command line. Torch-free.
// Thread rule: immutable.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace ranklab {

enum class TorchtitanFate {
  kTo,        // a setting here takes the same value
  kRead,      // read together with others (torchtitan_config.cpp)
  kNoEffect,  // does not affect anything that is computed or planned here
  kLeftOut,   // ignored; if it is on, the text says what is done here without it
};

struct TorchtitanKey {
  std::string_view name;  // "SECTION.*": every other key of that section
  TorchtitanFate fate = TorchtitanFate::kNoEffect;
  const char* text = "";
};
std::span<const TorchtitanKey> torchtitan_keys();
// Null if no such key of torchtitan is known here.
const TorchtitanKey* find_torchtitan_key(const std::string& name);

}  // namespace ranklab
