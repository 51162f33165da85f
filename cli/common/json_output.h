// The common format of all --json output: {"schema": 1, "ok": true, "data": ..., "warnings": [...]}, and for an error
// {"schema": 1, "ok": false, "error": {"code", "message", "hint"}} on stdout, where a program reads. "code" is the
// process's exit code. Thread rule: its rank's thread.
#pragma once
#include <exception>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ranklab {

std::string json_result(const nlohmann::ordered_json& data, const std::vector<std::string>& warnings = {},
                        int indent = 2);
// One line, so that it may end a stream of objects.
std::string json_error(const std::exception& error, const nlohmann::ordered_json& data, int code);
std::string json_error(const std::exception& error);

// The exit code for an exception that main() caught.
int exit_code_of(const std::exception& error);

}  // namespace ranklab
