#include "core/plan/stand_ins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "backends/meta/meta_world.h"
#include "core/runtime/components.h"
#include "core/runtime/replica_documents.h"

namespace ranklab {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::UnorderedElementsAre;

RunPlan plan_of(ParallelDims dims, OptimizerKind optimizer = OptimizerKind::kAdamW, int groups_that_shard = 1) {
  TrainConfig c;
  c.mock_data = true;
  c.parallel = dims;
  c.global_batch_size = 24;
  if (groups_that_shard > 1) {
    c.zero_stage = 2;
    c.parallel.replicas = groups_that_shard;
  }
  c.optimizer = optimizer;
  return resolve(c);
}

std::vector<StandIns> choices(const RunPlan& plan, const std::vector<ReplicaDocuments>& replicas = {}) {
  return choices_of_stand_ins(plan, make_meta_world, default_parts(), replicas);
}

TEST(StandIns, TheFirstRankOfAStageRepresentsItWhereAllAreAlike) {
  const RunPlan plan = plan_of({.world = 8, .tp = 2, .pp = 2});
  EXPECT_THAT(first_stand_ins(plan), ElementsAre(0, 0, 0, 0, 4, 4, 4, 4));
  EXPECT_THAT(choices(plan), ElementsAre(first_stand_ins(plan)));
}

TEST(StandIns, WhereDocumentsDifferTheReplicaWithMostOrLongestOfThem) {
  const RunPlan plan = plan_of({.world = 4, .tp = 1, .pp = 1});
  const std::vector<ReplicaDocuments> replicas = {
      {.count = 3, .pairs = 5}, {.count = 9, .pairs = 1}, {.count = 1, .pairs = 8}, {.count = 2, .pairs = 2}};
  EXPECT_THAT(choices(plan, replicas), UnorderedElementsAre(StandIns(4, 1), StandIns(4, 2)));
}

// Of two groups of six that shard, only the second crosses the link between nodes of eight.
TEST(StandIns, WhereGroupsOfReplicasDoNotLieAlikeOnNodesOneThatGoesBetweenThem) {
  RunPlan plan = plan_of({.world = 12, .tp = 1, .pp = 1}, OptimizerKind::kAdamW, 2);
  EXPECT_THAT(choices(plan), Contains(Each(Ge(6))));
}

// Of two pipelines over nodes of five, one crosses nodes: that of the second rank of each tensor-parallel group.
TEST(StandIns, WherePipelinesDoNotLieAlikeOnNodesOneThatGoesBetweenThem) {
  RunPlan plan = plan_of({.world = 6, .tp = 2, .pp = 3});
  plan.config.gpus_per_node = 5;
  EXPECT_THAT(choices(plan), Contains(ElementsAre(1, 1, 3, 3, 5, 5)));
}

std::vector<StandIns> recorded(const RunPlan& plan) {
  return stand_ins_to_record(plan, make_meta_world, default_parts(), {});
}

TEST(StandIns, FewRanksThatMayDifferAllRun) {
  RunPlan plan = plan_of({.world = 6, .tp = 2, .pp = 3});
  EXPECT_THAT(recorded(plan), ElementsAre(first_stand_ins(plan)));
  plan.config.gpus_per_node = 5;
  EXPECT_THAT(recorded(plan), ElementsAre(ElementsAre(0, 1, 2, 3, 4, 5)));
}

TEST(StandIns, OfManyRanksThatMayDifferTheCandidatesRun) {
  RunPlan plan = plan_of({.world = 24, .tp = 2, .pp = 3});
  plan.config.gpus_per_node = 5;
  EXPECT_EQ(recorded(plan).front().back(), 23);
  plan.config.model.num_layers = 96;
  EXPECT_EQ(recorded(plan), choices(plan));
}

TEST(StandIns, EachChoiceIsNamedOnceAndRunsItsOwnStage) {
  const RunPlan plan = plan_of({.world = 4, .tp = 1, .pp = 2}, OptimizerKind::kMuon);
  const std::vector<StandIns> all = choices(plan);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(std::set<StandIns>(all.begin(), all.end()).size(), all.size());
  for (const StandIns& one : all)
    for (int rank = 0; rank < plan.mesh.world_size(); ++rank)
      EXPECT_EQ(plan.mesh.coordinate(Axis::kPp, one[static_cast<size_t>(rank)]), plan.mesh.coordinate(Axis::kPp, rank));
}

}  // namespace
}  // namespace ranklab
