// A streaming reader of a Chrome trace file: each element of traceEvents is passed on and dropped, so memory does not
// grow with the file. Thread rule: one thread.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

namespace ranklab {

struct ChromeJsonVisitor {
  // Called for a top-level value other than traceEvents, when it ends.
  std::function<void(const std::string& key, const nlohmann::json& value)> on_section;
  std::function<void(const nlohmann::json& event, size_t number)> on_event;
};

// Throws kBadFile naming the byte where the text stops being JSON, or the event that a visitor rejected.
void visit_chrome_json(const std::string& path, const ChromeJsonVisitor& visitor);

// The library's message about a value, without the library's error number.
std::string json_problem(const nlohmann::json::exception& error);

// Microseconds with decimals -> nanoseconds. Throws kBadFile when `value` is not a number in range.
int64_t ns_of(const nlohmann::json& value);
// A number, or one of the strings "NaN", "Infinity", "-Infinity".
double double_of(const nlohmann::json& value);

}  // namespace ranklab
