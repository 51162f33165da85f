// Appends JSON tokens to a string: the building blocks of the streaming trace writer. Invalid UTF-8 is replaced by
// U+FFFD, so that a file is always valid JSON. Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace ranklab {

void append_json_string(std::string& out, std::string_view text);  // with quotes
void append_json_int(std::string& out, int64_t value);
// Shortest text that reads back to the same double. JSON has no NaN or infinity: those become the strings "NaN",
// "Infinity", "-Infinity".
void append_json_double(std::string& out, double value);
// Nanoseconds as the decimal microseconds of the Chrome format, exactly: 1234 -> 1.234
void append_json_us(std::string& out, int64_t nanoseconds);

}  // namespace ranklab
