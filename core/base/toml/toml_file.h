// Parses TOML text into a table (core/base/toml/toml.h). Thread rule: pure.
#pragma once
#include <string>

#include "core/base/toml/toml.h"

namespace ranklab {

// Throws kBadFile naming `name` and the line. `fix` tells the user where to see a correct file.
toml::table parse_toml(const std::string& text, const std::string& name, const std::string& fix);

}  // namespace ranklab
