#include "core/checkpoint/tensor_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/checkpoint/tensor_files.h"

namespace ranklab {
namespace {

using checkpoint_samples::Tensors;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Kind = TensorDifference::Kind;

TensorDifferences diff(const Tensors& a, const Tensors& b, const SafetensorsWriteOptions& how_a = {},
                       const SafetensorsWriteOptions& how_b = {}) {
  static const std::string kA = temporary_path("ranklab_diff_a"), kB = temporary_path("ranklab_diff_b");
  write_safetensors(kA, a, how_a);
  write_safetensors(kB, b, how_b);
  const SafetensorsFile left(kA), right(kB);
  return diff_tensors(tensor_places(left), tensor_places(right));
}

TEST(TensorDiff, EqualTensorsAreEqualHoweverTheyWereWritten) {
  Tensors a, b;
  a.add("x", TensorType::kF32, {2}, std::vector<float>{1, NAN}).add("y", TensorType::kU8, {0}, std::vector<char>{});
  b.add("y", TensorType::kU8, {0}, std::vector<char>{}).add("x", TensorType::kF32, {2}, std::vector<float>{1, NAN});
  const auto same = diff(a, b, {}, {.checksums = false});
  EXPECT_THAT(same.tensors, IsEmpty());
  EXPECT_EQ(same.same_tensors, 2u);
}

TEST(TensorDiff, MetadataDifferByTheirKeys) {
  EXPECT_THAT(keys_that_differ({{"a", "1"}, {"c", "2"}, {"e", ""}}, {{"a", "1"}, {"c", "3"}, {"d", ""}}),
              ElementsAre("c", "d", "e"));
}

// A model in two files has the tensors of the same model in one.
TEST(TensorDiff, TensorsMayBeInSeveralFiles) {
  const std::string whole = temporary_path("ranklab_diff_whole"), one = whole + "_1", two = whole + "_2";
  Tensors all, first, second;
  for (Tensors* set : {&all, &first}) set->add("x", TensorType::kF32, {2}, std::vector<float>{1, 2});
  for (Tensors* set : {&all, &second}) set->add("y", TensorType::kF32, {1}, std::vector<float>{3});
  write_safetensors(whole, all);
  write_safetensors(one, first);
  write_safetensors(two, second);
  const SafetensorsFile a(whole), b(one), c(two);
  TensorPlaces apart = tensor_places(b);
  const TensorDifferences lacking = diff_tensors(tensor_places(a), apart);
  ASSERT_EQ(lacking.tensors.size(), 1u);
  EXPECT_EQ(lacking.tensors[0].name, "y");
  apart.merge(tensor_places(c));
  EXPECT_THAT(diff_tensors(tensor_places(a), apart).tensors, IsEmpty());
}

TEST(TensorDiff, NamesWhatOneLacksAndWhatIsOfAnotherKind) {
  Tensors a, b;
  a.add("only a", TensorType::kF32, {}, std::vector<float>{1})
      .add("shape", TensorType::kF32, {2, 1}, std::vector<float>{1, 2})
      .add("type", TensorType::kF32, {1}, std::vector<float>{1});
  b.add("only b", TensorType::kF32, {}, std::vector<float>{1})
      .add("shape", TensorType::kF32, {2}, std::vector<float>{1, 2})
      .add("type", TensorType::kI32, {1}, std::vector<int>{1});
  const auto result = diff(a, b);
  EXPECT_EQ(result.same_tensors, 0u);
  std::vector<std::string> rows;
  for (const TensorDifference& d : result.tensors)
    rows.push_back(d.name + " " + std::to_string(static_cast<int>(d.kind)) + " " + d.a + " | " + d.b);
  EXPECT_THAT(rows, ElementsAre("only a 0 F32 [] | ", "only b 1  | F32 []", "shape 3 F32 [2, 1] | F32 [2]",
                                "type 2 F32 [1] | I32 [1]"));
}

TEST(TensorDiff, CountsElementsAndMeasuresThem) {
  Tensors a, b;
  a.add("w", TensorType::kF32, {2, 3}, std::vector<float>{1, 2, 3, 4, -0.5, 6});
  b.add("w", TensorType::kF32, {2, 3}, std::vector<float>{1, 2, 3.25, 4, -1, 6});
  const auto w = diff(a, b).tensors.at(0);
  EXPECT_EQ(w.kind, Kind::kValues);
  EXPECT_EQ(w.elements, 6u);
  EXPECT_EQ(w.differing, 2u);
  EXPECT_THAT(w.first, ElementsAre(0, 2));
  EXPECT_TRUE(w.has_values);
  EXPECT_EQ(w.max_absolute, 0.5);
  EXPECT_EQ(w.max_relative, 0.5);
}

TEST(TensorDiff, BitsCountAlsoWhereValuesAreEqual) {
  const auto of = [](float x, float y) {
    Tensors a, b;
    a.add("w", TensorType::kF32, {1}, std::vector<float>{x});
    b.add("w", TensorType::kF32, {1}, std::vector<float>{y});
    const auto result = diff(a, b);
    return result.tensors.empty() ? -1 : result.tensors[0].max_absolute;
  };
  EXPECT_EQ(of(0.0F, -0.0F), 0);
  EXPECT_EQ(of(NAN, -NAN), 0);
  EXPECT_EQ(of(NAN, NAN), -1) << "the same bits";
  EXPECT_EQ(of(NAN, 1), std::numeric_limits<double>::infinity());
  EXPECT_EQ(of(INFINITY, -INFINITY), std::numeric_limits<double>::infinity());
  Tensors a, b;
  a.add("n", TensorType::kI64, {2}, std::vector<int64_t>{1, 2});
  b.add("n", TensorType::kI64, {2}, std::vector<int64_t>{1, 3});
  EXPECT_FALSE(diff(a, b).tensors.at(0).has_values);
}

TEST(TensorDiff, LargeTensorsAreComparedPieceByPiece) {
  const int64_t rows = 700, columns = 1001;  // 2.8 MB; the chunks end within elements
  std::vector<float> x(static_cast<size_t>(rows * columns), 1), y = x;
  Tensors a, b;
  y[300 * 1001 + 17] = 1.5;
  y.back() = 3;
  a.add("w", TensorType::kF32, {rows, columns}, x);
  b.add("w", TensorType::kF32, {rows, columns}, y);
  const auto w = diff(a, b, {.chunk_bytes = 3001}, {.chunk_bytes = (1 << 20) + 3}).tensors.at(0);
  EXPECT_EQ(w.differing, 2u);
  EXPECT_THAT(w.first, ElementsAre(300, 17));
  EXPECT_EQ(w.max_absolute, 2);
}

}  // namespace
}  // namespace ranklab
