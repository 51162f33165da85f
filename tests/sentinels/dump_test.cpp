// The tensors that ranks dump, assembled by the slices that their files name, equal those of one rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/checkpoint/safetensors.h"
#include "core/checkpoint/slices.h"
#include "core/config/dump_choice.h"
#include "tests/sentinels/sentinel_run.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

// Elements by where they are: of a parameter the global index, of activations position, sequence and column.
using Elements = std::map<std::tuple<int64_t, int64_t, int64_t>, double>;

std::vector<double> numbers(const SafetensorsFile& file, const TensorEntry& tensor) {
  const std::vector<std::byte> bytes = file.read(tensor);
  std::vector<double> values(bytes.size() / sizeof(double));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

void take_parameter(const nlohmann::json& slice, const std::vector<double>& values, Elements& out) {
  const auto shape = slice["global_shape"].get<std::vector<int64_t>>();
  TensorSlice part{.begin = 0, .end = static_cast<int64_t>(values.size())};
  if (slice.contains("dim"))
    part.partition = {.dim = slice["dim"], .ranges = slice["ranges"].get<std::vector<std::pair<int64_t, int64_t>>>()};
  if (slice.contains("elements")) {
    part.begin = slice["elements"][0];
    part.end = slice["elements"][1];
  }
  for (const SliceRun& run : slice_runs(shape, part))
    for (int64_t i = 0; i < run.length; ++i) out[{run.global + i, 0, 0}] = values[static_cast<size_t>(run.at + i)];
}

void take_activation(const nlohmann::json& slice, int64_t width, const std::vector<double>& values, Elements& out) {
  std::vector<int64_t> positions;
  for (const auto& run : slice["positions"])
    for (int64_t i = 0; i < run[1].get<int64_t>(); ++i)
      positions.push_back(run[0].get<int64_t>() + i * run[2].get<int64_t>());
  const int64_t first = slice["sequences"][0], count = slice["sequences"][1].get<int64_t>() - first;
  ASSERT_EQ(positions.size() * static_cast<size_t>(count * width), values.size());
  size_t at = 0;
  for (const int64_t position : positions)
    for (int64_t b = 0; b < count; ++b)
      for (int64_t h = 0; h < width; ++h) out[{position, first + b, h}] = values[at++];
}

// The dumps of all ranks; a module's tensors of all microbatches are one.
std::map<std::string, Elements> dumped(TrainConfig config, const std::string& folder) {
  fs::remove_all(folder);
  run_sentinels(config, {.output = folder});
  std::map<std::string, Elements> all;
  for (int rank = 0; rank < config.parallel.world; ++rank) {
    const SafetensorsFile file(folder + "/dump/step-1/rank-" + std::to_string(rank) + ".safetensors");
    for (const TensorEntry& tensor : file.tensors()) {
      const auto slice = file.metadata().find("slice/" + tensor.name);
      if (slice == file.metadata().end()) {
        ADD_FAILURE() << tensor.name << " of rank " << rank << " has no slice";
        continue;
      }
      const auto json = nlohmann::json::parse(slice->second);
      const std::vector<double> values = numbers(file, tensor);
      const bool of_parameter = !json.contains("positions");
      Elements& out = all[of_parameter ? tensor.name : tensor.name.substr(0, tensor.name.rfind('/'))];
      of_parameter ? take_parameter(json, values, out) : take_activation(json, tensor.shape.back(), values, out);
    }
  }
  EXPECT_FALSE(fs::exists(folder + "/dump/step-0"));
  fs::remove_all(folder);
  return all;
}

struct DumpLayout {
  const char* name;
  ParallelDims parallel;
  int64_t zero = 0;
};
class Dumps : public testing::TestWithParam<DumpLayout> {};

TEST_P(Dumps, OfAllRanksMakeThoseOfOne) {
  TrainConfig config = small_config();
  config.dump_modules = "layers.1*, layers.3.attention_norm";
  config.dump_at = "step=1";
  config.parallel = GetParam().parallel;
  config.zero_stage = GetParam().zero;
  const auto want = dumped(on_one_rank(config), testing::TempDir() + "dump_one");
  const auto got = dumped(config, testing::TempDir() + "dump_" + GetParam().name);
  EXPECT_TRUE(want.contains("layers.1/output"));
  EXPECT_TRUE(want.contains("layers.1.attention/grad_output"));
  EXPECT_TRUE(want.contains("layers.3.attention_norm/output"));
  EXPECT_TRUE(want.contains("grad/layers.1.attention.qkv.weight"));
  EXPECT_TRUE(want.contains("weight/layers.1.mlp_norm.weight"));
  EXPECT_FALSE(want.contains("weight/layers.3.mlp_norm.weight"));
  // The stream that a norm reads is the one before it and the branch between the two.
  const Elements& before = want.at("layers.1.attention_norm/residual_stream");
  for (const auto& [at, value] : want.at("layers.1.mlp_norm/residual_stream"))
    EXPECT_NEAR(value, before.at(at) + want.at("layers.1.attention/output").at(at), 1e-12);
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, elements] : want) {
    ASSERT_TRUE(got.contains(name)) << name;
    const Elements& here = got.at(name);
    ASSERT_EQ(here.size(), elements.size()) << name;
    double worst = 0, largest = 0;
    for (const auto& [at, value] : elements) {
      ASSERT_TRUE(here.contains(at)) << name;
      worst = std::max(worst, std::abs(here.at(at) - value));
      largest = std::max(largest, std::abs(value));
    }
    EXPECT_LE(worst, 1e-12 * largest) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Dumps,
                         testing::Values(DumpLayout{"tp2_pp2_dp2", {.world = 8, .tp = 2, .pp = 2}},
                                         DumpLayout{"cp2_tp2_zero1", {.world = 4, .tp = 2, .cp = 2}, 1},
                                         DumpLayout{"zero3", {.world = 4}, 3}),
                         [](const auto& one) { return one.param.name; });

TEST(DumpChoices, TakeStepsRanksMicrobatchesAndPasses) {
  const DumpChoice all = dump_choice("").in_run_from(0);
  EXPECT_TRUE(all.takes_step(0) && all.takes_rank(7) && all.takes_microbatch(3) && !all.takes_step(1));
  const DumpChoice some = dump_choice("step=3..5 rank=0,4 microbatch=1 pass=backward");
  EXPECT_TRUE(some.takes_step(3) && some.takes_step(5) && !some.takes_step(6));
  EXPECT_TRUE(some.takes_rank(4) && !some.takes_rank(1));
  EXPECT_TRUE(some.takes_microbatch(1) && !some.takes_microbatch(0));
  EXPECT_TRUE(some.backward && !some.forward);
  for (const char* wrong : {"3", "step=", "step=-1", "step=5..3", "step=x", "rank=", "pass=sideways", "when=3"})
    EXPECT_THROW(dump_choice(wrong), Error) << wrong;
}

TEST(DumpChoices, ARunThatGoesOnDumpsItsOwnFirstStep) {
  const DumpChoice late = dump_choice("rank=1").in_run_from(5);
  EXPECT_TRUE(late.takes_step(5) && !late.takes_step(0) && !late.takes_step(6));
  const DumpChoice named = dump_choice("step=3..6").in_run_from(5);
  EXPECT_TRUE(named.takes_step(3) && named.takes_step(6));
}

TEST(DumpChoices, WhatARunNeverReachesIsRefused) {
  const DumpBounds run{.steps = 4, .ranks = 8, .microbatches = 2};
  for (const char* wrong : {"step=4", "rank=0,8", "microbatch=2"})
    EXPECT_THROW(check_reached(dump_choice(wrong), run), Error) << wrong;
  for (const char* right : {"", "step=3", "step=2..9", "rank=7", "microbatch=1"})
    EXPECT_NO_THROW(check_reached(dump_choice(right), run)) << right;
}

TEST(DumpChoices, APatternWithoutAModuleIsRefused) {
  TrainConfig config = small_config();
  config.dump_modules = "layers.1.atention";
  try {
    run_sentinels(config);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean 'layers.1.attention'?"));
  }
  config.dump_modules.clear();
  config.dump_at = "step=1";
  EXPECT_THROW(resolve(config), Error);
}

}  // namespace
}  // namespace ranklab
