// ranklab precision table and quantize, ranklab bench quantize.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <vector>

#include "core/checkpoint/safetensors.h"
#include "tests/cli/ranklab_program.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

TEST(PrecisionTable, PrintsEveryCode) {
  const Outcome run = ranklab("precision table e4m3 --json");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const auto data = nlohmann::json::parse(run.output)["data"];
  ASSERT_EQ(data["codes"].size(), 256u);
  EXPECT_EQ(data["codes"][0x7e], 448.0);
  EXPECT_EQ(data["codes"][0x7f], "nan");
  EXPECT_EQ(data["codes"][0x81], -0.001953125);
  EXPECT_EQ(data["largest"], 448.0);
  const Outcome text = ranklab("precision table e2m1");
  EXPECT_THAT(text.output, HasSubstr("largest 6, smallest normal 1, smallest 0.5"));
  EXPECT_THAT(ranklab("precision table e5m2").output, HasSubstr("57344"));
}

nlohmann::json tensors(const std::string& arguments) {
  const Outcome run = ranklab("precision quantize " + arguments + " --json");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  return nlohmann::json::parse(run.output)["data"]["tensors"];
}

// The row of a format: unscaled, or held in groups.
nlohmann::json row_of(const nlohmann::json& tensor, const std::string& format, const std::string& granularity,
                      int block = 0, const std::string& scale = "fp32") {
  for (const auto& row : tensor["formats"]) {
    const auto& held = row["held"];
    if (row["format"] != format || held.is_null() != granularity.empty()) continue;
    if (granularity.empty() || (held["granularity"] == granularity && held["block"] == block && held["scale"] == scale))
      return row;
  }
  ADD_FAILURE() << "no row " << format << " " << granularity << " in " << tensor;
  return {};
}

TEST(PrecisionQuantize, CountsWhatIsLostWithoutScales) {
  const auto small = tensors("'normal(0,1e-3)'")[0];
  EXPECT_NEAR(row_of(small, "e4m3", "")["underflow"].get<double>(), 0.6712, 0.002);
  EXPECT_NEAR(row_of(small, "e5m2", "")["underflow"].get<double>(), 0.0061, 0.0005);
  EXPECT_EQ(row_of(small, "e2m1", "")["underflow"], 1.0);
  EXPECT_NEAR(row_of(tensors("'normal(0,200)'")[0], "e4m3", "")["saturated"].get<double>(), 0.0251, 0.0006);
}

// Scales make the size of numbers irrelevant; smaller groups lose less in four bits.
TEST(PrecisionQuantize, GroupsKeepWhatTheyCan) {
  const auto tensor = tensors("'normal(0,1e-3)' --samples 100000")[0];
  EXPECT_EQ(tensor["count"], 100000);
  EXPECT_EQ(tensor["rows"], 98);
  const auto zeros = [&](const char* granularity, int block, const char* scale) {
    return row_of(tensor, "e2m1", granularity, block, scale)["underflow"].get<double>();
  };
  EXPECT_NEAR(zeros("tile", 16, "e4m3"), 0.067, 0.003);
  EXPECT_NEAR(zeros("tile", 32, "e8m0"), 0.087, 0.003);
  EXPECT_GT(zeros("tensor", 0, "fp32"), 0.15);
  const auto held = row_of(tensor, "e4m3", "tile", 128);
  EXPECT_LT(held["underflow"].get<double>(), 0.001);
  EXPECT_NEAR(held["sqnr_db"].get<double>(), 31.5, 1);
  EXPECT_GT(row_of(tensor, "e4m3", "tile", 32, "e8m0")["saturated"].get<double>(), 0.0);
  for (const auto& [granularity, block] : {std::pair("tensor", 0), {"row", 0}, {"tile", 128}, {"block", 128}})
    EXPECT_EQ(row_of(tensor, "e4m3", granularity, block)["saturated"], 0.0) << granularity;
  EXPECT_EQ(row_of(tensor, "e4m3", "tile", 32, "e8m0_up")["saturated"], 0.0);
}

TEST(PrecisionQuantize, ReadsFilesOfNumbers) {
  const std::string text = temporary_path("numbers") + ".txt", raw = temporary_path("numbers.raw");
  std::ofstream(text) << "1, 0.5\n-2 1e-9\n";
  const std::vector<float> numbers = {1, 0.5f, -2, 1e-9f};
  std::ofstream(raw, std::ios::binary)
      .write(reinterpret_cast<const char*>(numbers.data()), static_cast<std::streamsize>(numbers.size() * 4));
  const auto of_text = tensors(text)[0], of_raw = tensors(raw)[0];
  EXPECT_EQ(of_text["formats"], of_raw["formats"]);
  EXPECT_EQ(of_text["count"], 4);
  EXPECT_EQ(row_of(of_text, "e4m3", "")["underflow"], 0.25);
  const std::string copy = temporary_path("numbers (1)") + ".txt";  // as browsers name a second download
  std::filesystem::rename(text, copy);
  EXPECT_EQ(tensors("'" + copy + "'")[0]["formats"], of_raw["formats"]);
  std::filesystem::remove(copy);
  std::ofstream(text) << "1 two";
  EXPECT_THAT(ranklab("precision quantize " + text + " 2>&1").output, HasSubstr("'two'"));
}

TEST(PrecisionQuantize, ReadsTensorsOfACheckpoint) {
  const std::string path = temporary_path("weights") + ".safetensors";
  const std::vector<float> a = {1, 2, 3, 4, 5, 6}, b = {1e-4f, 0};
  const auto bytes = [](const std::vector<float>& x) { return std::as_bytes(std::span(x)); };
  const std::vector<TensorToWrite> written = {{.name = "a.weight", .shape = {2, 3}, .bytes = bytes(a)},
                                              {.name = "b.weight", .shape = {2}, .bytes = bytes(b)}};
  write_safetensors(path, written);
  const auto all = tensors(path);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["rows"], 2);
  EXPECT_EQ(all[0]["cols"], 3);
  EXPECT_EQ(row_of(all[1], "e4m3", "")["underflow"], 0.5);
  EXPECT_EQ(tensors(path + " --tensor b.weight")[0], all[1]);
  EXPECT_THAT(ranklab("precision quantize " + path).output, HasSubstr("a.weight"));
  const Outcome wrong = ranklab("precision quantize " + path + " --tensor a.wieght 2>&1");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.output, HasSubstr("did you mean 'a.weight'"));
}

TEST(BenchQuantize, TimesEachOperandBesideAMemcpy) {
  const Outcome run = run_command(RANKLAB_PROGRAM " bench quantize --rows 64 --cols 128 --repetitions 1 --json");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const auto data = nlohmann::json::parse(run.output)["data"];
  EXPECT_GT(data["memcpy_bytes_per_s"].get<double>(), 0);
  std::set<std::string> recipes;
  for (const auto& row : data["operands"]) {
    recipes.insert(row["recipe"].get<std::string>());
    EXPECT_GT(row["times_memcpy"].get<double>(), 0);
  }
  EXPECT_THAT(recipes, testing::IsSupersetOf({"fp8_current", "deepseek_v3", "mxfp8", "nvfp4"}));
}

}  // namespace
}  // namespace ranklab
