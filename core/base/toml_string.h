// A text as TOML writes it: in quotes, with what TOML does not allow there escaped. Thread rule: pure.
#pragma once
#include <string>

namespace ranklab {

std::string toml_string(const std::string& text);

}  // namespace ranklab
