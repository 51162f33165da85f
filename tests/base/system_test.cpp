#include "core/base/system.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace ranklab {
namespace {

// Texts as wide as a number that somebody exported by mistake would need all memory.
TEST(TerminalColumns, AreTheVariablesWithinReason) {
  const auto columns = [](const char* variable) {
    ::setenv("COLUMNS", variable, 1);
    return terminal_columns(90, -1);
  };
  EXPECT_EQ(columns("120"), 120);
  for (const char* huge : {"1001", "100000", "2147483648", "99999999999999999999"}) EXPECT_EQ(columns(huge), 1000);
  for (const char* none : {"", "0", "-5", "wide", "-99999999999999999999"}) EXPECT_EQ(columns(none), 90) << none;
  ::unsetenv("COLUMNS");
}

}  // namespace
}  // namespace ranklab
