// Every setting as a JSON Schema (draft 2020-12, https://json-schema.org), for editors that complete and check TOML
// files (Taplo, "Even Better TOML"). Torch-free. Thread rule: pure.
#pragma once
#include <string>

namespace ranklab {

std::string config_json_schema();

}  // namespace ranklab
