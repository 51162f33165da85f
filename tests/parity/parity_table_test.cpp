// A result as the table of its picture: a row for each tensor, a cell for each rank that has a part.
#include "cli/parity/parity_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/sim/aten.h"

namespace ranklab {
namespace {

const TensorKey kTensor = {.step = 1, .phase = ParityPhase::kBackward, .name = "layers.1.mlp", .kind = "grad"};

TensorPiece piece(int rank, GlobalSlice slice, std::vector<float> values) {
  return {.rank = rank, .slice = std::move(slice), .value = at::tensor(values)};
}

ParityReference one_rank() {
  ParityRecord record;
  record.title = "one rank";
  record.tensors[kTensor] = {piece(0, whole_slice({4}), {1, 2, 3, 4})};
  return {std::move(record), {}};
}

// Rank 0 has the first half in two pieces, the second of them wrong by 0.5; rank 1 has nothing; rank 2 the other half,
// right; rank 3 a tensor of another shape.
ParityRecord four_ranks() {
  ParityRecord record;
  record.title = "--tp 4";
  record.mesh = ParityMesh({"tp 0 of 4", "tp 1 of 4", "tp 2 of 4", "tp 3 of 4"});
  record.tensors[kTensor] = {piece(0, {.shape = {4}, .positions = {{0}}}, {1}),
                             piece(0, {.shape = {4}, .positions = {{1}}}, {2.5}),
                             piece(2, {.shape = {4}, .positions = {{2, 3}}}, {3, 4}), piece(3, whole_slice({1}), {4})};
  return record;
}

TEST(ParityTable, HasACellForEachRankWithAPart) {
  const viz::ParityMap map = parity_table(compare_with_reference(four_ranks(), one_rank()));
  EXPECT_EQ(map.title, "--tp 4");
  EXPECT_EQ(map.reference, "one rank");
  EXPECT_FALSE(map.same);
  EXPECT_EQ(map.ranks, (std::vector<std::string>{"tp0", "tp1", "tp2", "tp3"}));
  ASSERT_EQ(map.rows.size(), 1U);
  const viz::ParityRow& row = map.rows[0];
  EXPECT_EQ(row.step, 1);
  EXPECT_EQ(row.phase, "backward");
  EXPECT_EQ(row.text(), "layers.1.mlp grad");
  EXPECT_EQ(row.allowed, 16);
  ASSERT_EQ(row.cells.size(), 4U);
  ASSERT_TRUE(row.cells[0] && row.cells[2]);
  // One element: 0.5 over the reference's root mean square, in fp32's epsilons.
  EXPECT_NEAR(row.cells[0]->eps, 0.5 / std::sqrt(7.5) / std::numeric_limits<float>::epsilon(), 1);
  EXPECT_TRUE(row.cells[0]->wrong);
  EXPECT_EQ(row.cells[0]->slice, "[1:2]");
  EXPECT_EQ(row.cells[0]->place, "[1]");
  EXPECT_EQ(row.cells[0]->got, 2.5);
  EXPECT_EQ(row.cells[0]->want, 2);
  EXPECT_FALSE(row.cells[1]);
  EXPECT_EQ(row.cells[2]->eps, 0);
  EXPECT_FALSE(row.cells[2]->wrong);
  EXPECT_EQ(row.cells[2]->place, "");
  EXPECT_FALSE(row.cells[3]);
}

TEST(ParityTable, OfARightRunNothingIsWrong) {
  ParityRecord record = four_ranks();
  record.tensors[kTensor] = {piece(2, {.shape = {4}, .positions = {{2, 3}}}, {3, 4})};
  const viz::ParityMap map = parity_table(compare_with_reference(record, one_rank()));
  EXPECT_TRUE(map.same);
  EXPECT_FALSE(map.rows.at(0).cells.at(2)->wrong);
}

}  // namespace
}  // namespace ranklab
