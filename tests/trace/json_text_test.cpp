#include "core/trace/json_text.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <random>

namespace ranklab {
namespace {

std::string json_of(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}
std::string us(int64_t nanoseconds) {
  std::string out;
  append_json_us(out, nanoseconds);
  return out;
}
std::string number(double value) {
  std::string out;
  append_json_double(out, value);
  return out;
}

TEST(JsonText, EscapesWhatJsonWants) {
  EXPECT_EQ(json_of("a\"b\\c\n\t\r\x01\x7f"), "\"a\\\"b\\\\c\\n\\t\\r\\u0001\\u007f\"");
  EXPECT_EQ(json_of("gr\xC3\xB6\xC3\x9F\x65 \xE2\x86\x92 \xF0\x9F\x98\x80"),
            "\"gr\xC3\xB6\xC3\x9F\x65 \xE2\x86\x92 \xF0\x9F\x98\x80\"");
}

TEST(JsonText, ReplacesBrokenUtf8) {
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(json_of("a\xFF"
                    "b"),
            "\"a" + bad + "b\"");
  EXPECT_EQ(json_of("\xC3"), "\"" + bad + "\"");                                // cut off
  EXPECT_EQ(json_of("\xC0\xAF"), "\"" + bad + bad + "\"");                      // overlong
  EXPECT_EQ(json_of("\xED\xA0\x80"), "\"" + bad + bad + bad + "\"");            // surrogate
  EXPECT_EQ(json_of("\xF4\x90\x80\x80"), "\"" + bad + bad + bad + bad + "\"");  // past U+10FFFF
}

TEST(JsonText, AnyBytesAreValidJson) {
  std::mt19937 generator(1);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) text += static_cast<char>(generator() & 0xFF);
    const auto parsed = nlohmann::json::parse(json_of(text), nullptr, false);
    ASSERT_TRUE(parsed.is_string()) << json_of(text);
    ASSERT_EQ(json_of(parsed.get<std::string>()), json_of(text));
  }
}

TEST(JsonText, TimesAreExact) {
  EXPECT_EQ(us(0), "0");
  EXPECT_EQ(us(1), "0.001");
  EXPECT_EQ(us(1230), "1.23");
  EXPECT_EQ(us(1000), "1");
  EXPECT_EQ(us(-1500), "-1.5");
  EXPECT_EQ(us(1'234'567'890'123'456), "1234567890123.456");
}

TEST(JsonText, NumbersReadBackTheSame) {
  EXPECT_EQ(number(0.1), "0.1");
  EXPECT_EQ(number(-3), "-3");
  EXPECT_EQ(number(std::numeric_limits<double>::quiet_NaN()), "\"NaN\"");
  EXPECT_EQ(number(-std::numeric_limits<double>::infinity()), "\"-Infinity\"");
}

}  // namespace
}  // namespace ranklab
