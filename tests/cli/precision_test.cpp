// ranklab precision table and quantize.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/run_program.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

Outcome ranklab(const std::string& arguments) {
  return run_command(std::string(RANKLAB_PROGRAM " precision ") + arguments);
}

TEST(PrecisionTable, PrintsEveryCode) {
  const Outcome run = ranklab("table e4m3 --json");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const auto data = nlohmann::json::parse(run.output)["data"];
  ASSERT_EQ(data["codes"].size(), 256u);
  EXPECT_EQ(data["codes"][0x7e], 448.0);
  EXPECT_EQ(data["codes"][0x7f], "nan");
  EXPECT_EQ(data["codes"][0x81], -0.001953125);
  EXPECT_EQ(data["largest"], 448.0);
  const Outcome text = ranklab("table e2m1");
  EXPECT_THAT(text.output, HasSubstr("largest 6, smallest normal 1, smallest 0.5"));
  EXPECT_THAT(ranklab("table e5m2").output, HasSubstr("57344"));
}

TEST(PrecisionQuantize, CountsWhatIsLost) {
  const Outcome run = ranklab("quantize 'normal(0,1e-3)' --json");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  for (const auto& row : nlohmann::json::parse(run.output)["data"]["formats"]) {
    if (row["scaling"] != "none") {
      EXPECT_EQ(row["saturated"], 0.0) << row;
      continue;
    }
    const double want = row["format"] == "e4m3" ? 0.6712 : row["format"] == "e5m2" ? 0.0061 : 1.0;
    EXPECT_NEAR(row["underflow"].get<double>(), want, want < 0.1 ? 0.0005 : 0.002) << row;
  }
}

}  // namespace
}  // namespace ranklab
