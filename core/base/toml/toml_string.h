// A string in TOML syntax: quoted, with the characters escaped that TOML does not allow there. Thread rule: pure.
#pragma once
#include <string>

namespace ranklab {

std::string toml_string(const std::string& text);

}  // namespace ranklab
