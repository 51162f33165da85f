// What another trainer's configuration means here: settings, and what is left out of them. Thread rule: plain data.
#pragma once
#include <string>
#include <vector>

#include "core/config/settings/sources.h"

namespace ranklab {

struct ForeignConfig {
  std::vector<ConfigSetting> settings;  // the origin of each: where it was given, or "default of" that trainer
  std::vector<std::string> left_out;    // "NAME: what is done here without it"
};

}  // namespace ranklab
