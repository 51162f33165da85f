// Runs of which only files are left: ours in any two layouts, and those of another program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/checkpoint/safetensors.h"
#include "core/parity/microscope.h"
#include "core/parity/read_dumps.h"
#include "core/runtime/engine.h"
#include "tests/parity/world_of.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

namespace fs = std::filesystem;

std::string dumped(TrainConfig config, const std::string& name) {
  const std::string folder = testing::TempDir() + "parity_" + name;
  fs::remove_all(folder);
  config.dump_modules = "*";
  config.dump_at = "step=0..1";
  config.log_dir = folder;
  config.trace = false;
  const RunPlan plan = resolve(config);
  RuntimeEngine(default_components(world_of(plan), plan), plan).fit();
  return folder + "/dump";
}

TEST(Dumps, OfTwoLayoutsAreComparedAsTheRunsAre) {
  TrainConfig config = small_config();
  const ParityReference reference(read_dumps(dumped(on_one_rank(config), "one")), {}, kFactor, 512);
  config.parallel = {.world = 8, .tp = 2, .pp = 2};
  config.zero_stage = 1;
  const ParityResult right = compare_with_reference(read_dumps(dumped(config, "right")), reference);
  EXPECT_FALSE(right.differs()) << right.wrong()->key.text();
  EXPECT_GT(right.comparison.pieces, 500U);
  config.inject = "norm-unreduced";
  const ParityResult wrong = compare_with_reference(read_dumps(dumped(config, "wrong")), reference);
  ASSERT_NE(wrong.wrong(), nullptr);
  EXPECT_EQ(wrong.wrong()->key.text(), "final_norm.weight grad");
  EXPECT_EQ(wrong.axis(), "tp");
}

struct File {
  int rank;
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::vector<float>> tensors;
};

std::string written(const std::string& name, const std::vector<File>& files) {
  const std::string folder = testing::TempDir() + "parity_files_" + name;
  fs::remove_all(folder);
  fs::create_directories(folder + "/step-0");
  for (const File& file : files) {
    std::vector<TensorToWrite> tensors;
    for (const auto& [tensor, values] : file.tensors)
      tensors.push_back({.name = tensor,
                         .type = TensorType::kF32,
                         .shape = {static_cast<int64_t>(values.size())},
                         .bytes = std::as_bytes(std::span(values))});
    write_safetensors(folder + "/step-0/rank-" + std::to_string(file.rank) + ".safetensors", tensors,
                      {.metadata = file.metadata});
  }
  return folder;
}

constexpr const char* kFirstHalf = R"({"global_shape": [4], "dims": {"0": [[0, 2]]}})";
constexpr const char* kLastHalf = R"({"global_shape": [4], "dims": {"0": [[2, 4]]}})";

TEST(Dumps, OfAnotherProgramAreReadBySlicesOrderAndCoordinates) {
  const std::string order = R"(["b/output", "a/output"])";
  const std::string one = written("one", {{0, {{"order", order}}, {{"a/output", {1, 2, 3, 4}}, {"b/output", {5, 6}}}}});
  // Both are wrong on the second rank; b was computed first.
  const std::string two = written("two", {{0,
                                           {{"coordinates", "tp 0 of 2"}, {"slice/a/output", kFirstHalf}},
                                           {{"a/output", {1, 2}}, {"b/output", {5, 6}}}},
                                          {1,
                                           {{"coordinates", "tp 1 of 2"}, {"slice/a/output", kLastHalf}},
                                           {{"a/output", {3, 5}}, {"b/output", {5, 7}}}}});
  const ParityReference reference(read_dumps(one), {});
  EXPECT_FALSE(compare_with_reference(read_dumps(one), reference).differs());
  const ParityResult result = compare_with_reference(read_dumps(two), reference);
  ASSERT_EQ(result.comparison.count_wrong(), 2U);
  EXPECT_EQ(result.wrong()->key.text(), "b output");
  EXPECT_EQ(result.wrong()->wrong_ranks, std::vector<int>{1});
  EXPECT_EQ(result.mesh.label(1), "tp1");
  EXPECT_EQ(result.axis(), "tp");
  const TensorVerdict& a = result.comparison.verdicts[1];
  EXPECT_EQ(a.worst.place, 3);
  EXPECT_EQ(a.worst.got, 5);
  EXPECT_EQ(a.worst.want, 4);
}

TEST(Dumps, OfOtherShapesAreNotCalledTheSame) {
  const std::string one = written("shape_one", {{0, {}, {{"a/output", {1, 2, 3, 4}}, {"weight/a", {1, 2}}}}});
  const std::string other = written("shape_other", {{0, {}, {{"a/output", {1, 2}}, {"weight/a", {1, 2}}}}});
  const ParityReference reference(read_dumps(one), {});
  const ParityResult result = compare_with_reference(read_dumps(other), reference);
  ASSERT_EQ(result.comparison.verdicts.size(), 1U);
  EXPECT_EQ(result.comparison.not_compared.size(), 1U);
  // Copies that differ, of which one has not the reference's shape.
  const std::string two = written("shape_two", {{0, {{"coordinates", "tp 0 of 2"}}, {{"weight/a", {1, 2}}}},
                                                {1, {{"coordinates", "tp 1 of 2"}}, {{"weight/a", {1, 2, 3}}}}});
  const ParityResult differs = compare_with_reference(read_dumps(two), reference);
  EXPECT_FALSE(differs.wrong() != nullptr && differs.why.empty());
}

TEST(Dumps, BrokenFilesAreRefusedByName) {
  const auto refusal = [](const std::string& folder) {
    try {
      read_dumps(folder);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  const auto of = [&](const std::map<std::string, std::string>& metadata) {
    return refusal(written("bad", {{0, metadata, {{"a/output", {1, 2}}}}}));
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal(testing::TempDir() + "absent"), HasSubstr("cannot read folder"));
  EXPECT_THAT(of({{"slice/a/output", "{"}}), HasSubstr("not JSON"));
  EXPECT_THAT(of({{"slice/a/output", "{}"}}), HasSubstr("cannot be read"));
  EXPECT_THAT(of({{"slice/a/output", R"({"global_shape": [4], "dims": {"3": [[0, 2]]}})"}}),
              HasSubstr("cannot be read"));
  EXPECT_THAT(of({{"slice/a/output", R"({"global_shape": [4]})"}}), HasSubstr("a different number of elements"));
  EXPECT_THAT(of({{"slice/a/output", R"({"global_shape": [4], "dims": {"0": [[0, 99999999999]]}})"}}),
              HasSubstr("not a range of positions"));
  EXPECT_THAT(of({{"slice/a/output", R"({"global_shape": [-1, -2]})"}}), HasSubstr("cannot be read"));
  EXPECT_THAT(of({{"slice/a/output", R"({"global_shape": [1099511627776, 4], "dims": {"0": [[0, 2]]}})"}}),
              HasSubstr("cannot be read"));
  EXPECT_THAT(of({{"slice/a/output", R"({"global_shape": [2], "elements": [100, 102]})"}}),
              HasSubstr("cannot be read"));
  EXPECT_THAT(of({{"coordinates", "left 1"}}), HasSubstr("not the coordinates"));
  EXPECT_THAT(of({{"coordinates", "tp 1 of 4 pp 0 of 2"}}), HasSubstr("not the coordinates"));  // a comma is missing
  EXPECT_THAT(of({{"coordinates", "tp 0 of 12345678901"}}), HasSubstr("not the coordinates"));
  const std::string deep = std::string(400'000, '[') + std::string(400'000, ']');
  EXPECT_THAT(of({{"slice/a/output", deep}}), HasSubstr("cannot be read"));
  EXPECT_THAT(of({{"slice/a/output", R"({"global_shape": )" + deep + "}"}}), HasSubstr("cannot be read"));
  EXPECT_THAT(refusal(written("far", {{99999999, {}, {{"a/output", {1, 2}}}}})), HasSubstr("number ranks from 0"));
}

}  // namespace
}  // namespace ranklab
