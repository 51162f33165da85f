// Another trainer's configuration, converted: the settings here, and what was left out. Thread rule: plain data.
#pragma once
#include <string>
#include <vector>

#include "core/config/settings/sources.h"

namespace ranklab {

struct ForeignConfig {
  std::vector<ConfigSetting> settings;  // origin: where it was given, or "default of" that trainer
  std::vector<std::string> left_out;    // "NAME: what is done here without it"
};

}  // namespace ranklab
