// TOML text as a table (core/base/toml/toml.h). Thread rule: pure.
#pragma once
#include <string>

#include "core/base/toml/toml.h"

namespace ranklab {

// Throws kBadFile naming `name` and the line; `fix`: what shows how such a file looks.
toml::table parse_toml(const std::string& text, const std::string& name, const std::string& fix);

}  // namespace ranklab
