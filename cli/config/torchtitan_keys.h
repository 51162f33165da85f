// The keys of torchtitan's configuration, SECTION.KEY as its TOML files and its command line have them. Torch-free.
// Thread rule: immutable.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace ranklab {

enum class TorchtitanFate {
  kTo,        // the setting here that takes the same value
  kRead,      // with others together (torchtitan_config.cpp)
  kNoEffect,  // nothing that is computed or planned here depends on it
  kLeftOut,   // if it is on: what is done here without it
};

struct TorchtitanKey {
  std::string_view name;  // "SECTION.*": every other key of that section
  TorchtitanFate fate = TorchtitanFate::kNoEffect;
  const char* text = "";
};
std::span<const TorchtitanKey> torchtitan_keys();
// Null: torchtitan has no such key that is known here.
const TorchtitanKey* find_torchtitan_key(const std::string& name);

}  // namespace ranklab
