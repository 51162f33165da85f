// Groups against tables written by hand (Megatron-LM's documented layouts), and the errors of impossible sizes.
#include "core/comm/device_mesh.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.h"

namespace ranklab {
namespace {

using testing::HasSubstr;
using Table = std::vector<std::vector<int>>;

Table table(const DeviceMesh& mesh, Axis axis) {
  Table out;
  for (const Group& group : mesh.groups(axis)) out.push_back(group.global_ranks);
  return out;
}

std::string mesh_error(const ParallelDims& dims) {
  try {
    const DeviceMesh mesh(dims);
    return "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    return error.what();
  }
}

// Neighbours shard; those with the same place in other groups are replicas of each other.
TEST(DeviceMeshTest, GroupsThatShardCutDataParallelRanksOnceMore) {
  const DeviceMesh mesh({.world = 16, .tp = 2, .ep = 2, .replicas = 2});
  EXPECT_EQ(mesh.size(Axis::kDpShard), 4);
  EXPECT_EQ(mesh.size(Axis::kDpReplica), 2);
  EXPECT_EQ(mesh.group(Axis::kDpShard, 3).global_ranks, (std::vector<int>{1, 3, 5, 7}));
  EXPECT_EQ(mesh.group(Axis::kDpReplica, 3).global_ranks, (std::vector<int>{3, 11}));
  EXPECT_EQ(mesh.group(Axis::kDpShard, 11).label(), "dp-shard[9 11 13 15]");
  EXPECT_EQ(mesh.size(Axis::kEdpShard), 4);
  EXPECT_EQ(mesh.coordinate(Axis::kDpShard, 13), 2);
  EXPECT_EQ(mesh.coordinate(Axis::kDpReplica, 13), 1);
  EXPECT_THROW(DeviceMesh({.world = 6, .replicas = 4}), Error);
  EXPECT_THROW(DeviceMesh({.world = 4, .ep = 4, .replicas = 2}), Error);
}

// The example of Megatron-LM's initialize_model_parallel: 16 GPUs, tp 2, pp 4.
TEST(DeviceMeshTest, MegatronExample) {
  const DeviceMesh mesh({.world = 16, .tp = 2, .pp = 4});
  EXPECT_EQ(mesh.dims().dp, 2);
  EXPECT_EQ(table(mesh, Axis::kTp), (Table{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
  EXPECT_EQ(table(mesh, Axis::kDp), (Table{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(table(mesh, Axis::kPp), (Table{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
}

TEST(DeviceMeshTest, ContextAndExpertAxes) {
  const DeviceMesh mesh({.world = 16, .tp = 2, .cp = 2, .pp = 2, .ep = 4});
  EXPECT_EQ(table(mesh, Axis::kCp), (Table{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(table(mesh, Axis::kDp), (Table{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}}));
  EXPECT_EQ(table(mesh, Axis::kDpCp), (Table{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}}));
  // Experts fold the 8 ranks of a stage as edp 2 x ep 4 x etp 1.
  EXPECT_EQ(mesh.dims().edp, 2);
  EXPECT_EQ(table(mesh, Axis::kEp), (Table{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}, {12, 13, 14, 15}}));
  EXPECT_EQ(table(mesh, Axis::kEdp), (Table{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}}));
  EXPECT_EQ(mesh.size(Axis::kEtp), 1);
  EXPECT_EQ(mesh.size(Axis::kKv), 1);
  EXPECT_EQ(mesh.group(Axis::kEtp, 9).global_ranks, std::vector<int>{9});
}

// Eight ranks of tp, four key/value heads: neighbours read the same one.
TEST(DeviceMeshTest, RanksThatShareAKeyValueHead) {
  const DeviceMesh mesh({.world = 16, .tp = 8, .kv_copies = 2});
  EXPECT_EQ(mesh.size(Axis::kKv), 2);
  EXPECT_EQ(table(mesh, Axis::kKv), (Table{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
  EXPECT_EQ(mesh.coordinate(Axis::kKv, 13), 1);
  EXPECT_THROW(DeviceMesh({.world = 8, .tp = 8, .kv_copies = 3}), Error);
}

TEST(DeviceMeshTest, ExpertTensorParallel) {
  const DeviceMesh mesh({.world = 8, .tp = 4, .ep = 2, .etp = 2});
  EXPECT_EQ(table(mesh, Axis::kEtp), (Table{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(table(mesh, Axis::kEp), (Table{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(table(mesh, Axis::kEdp), (Table{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
}

TEST(DeviceMeshTest, OtherOrders) {
  const DeviceMesh dp_first({.world = 8, .tp = 2, .pp = 2, .order = "dp-tp-cp-ep-pp"});
  EXPECT_EQ(table(dp_first, Axis::kDp), (Table{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(table(dp_first, Axis::kTp), (Table{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(table(dp_first, Axis::kPp), (Table{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  const DeviceMesh pp_inside({.world = 8, .tp = 2, .pp = 2, .ep = 2, .order = "tp-cp-ep-pp-dp"});
  EXPECT_EQ(table(pp_inside, Axis::kPp), (Table{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(table(pp_inside, Axis::kDp), (Table{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(table(pp_inside, Axis::kEp), (Table{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
}

// Megatron-LM's --use-tp-pp-dp-mapping, with experts that are not split as the dense layers are.
TEST(DeviceMeshTest, ExpertsOfAnyOrderStayInTheirPipelineStage) {
  const DeviceMesh mesh({.world = 16, .tp = 2, .pp = 2, .ep = 4, .order = "tp-cp-ep-pp-dp"});
  EXPECT_EQ(table(mesh, Axis::kPp), (Table{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
  EXPECT_EQ(table(mesh, Axis::kEp), (Table{{0, 1, 4, 5}, {2, 3, 6, 7}, {8, 9, 12, 13}, {10, 11, 14, 15}}));
  EXPECT_EQ(table(mesh, Axis::kEdp), (Table{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}}));
}

TEST(DeviceMeshTest, EveryRankIsInOneGroupOfEachAxis) {
  for (const char* order : {"tp-cp-ep-dp-pp", "pp-dp-ep-cp-tp", "cp-tp-dp-ep-pp", "tp-cp-ep-pp-dp", "ep-pp-tp-cp-dp"}) {
    const DeviceMesh mesh({.world = 24, .tp = 2, .cp = 3, .pp = 2, .ep = 2, .order = order});
    for (int a = 0; a < static_cast<int>(Axis::kCount); ++a) {
      const auto axis = static_cast<Axis>(a);
      EXPECT_EQ(static_cast<int>(mesh.groups(axis).size()) * mesh.size(axis), 24) << order << " " << name(axis);
      for (int rank = 0; rank < 24; ++rank) {
        const Group group = mesh.group(axis, rank);
        EXPECT_EQ(group.global_rank(), rank);
        EXPECT_EQ(group.size(), mesh.size(axis));
        EXPECT_EQ(mesh.coordinate(axis, rank), group.group_rank);
      }
    }
  }
}

TEST(DeviceMeshTest, Labels) {
  const DeviceMesh mesh({.world = 8, .tp = 2, .pp = 2});
  EXPECT_EQ(mesh.label(7), "dp1 tp1 pp1");
  EXPECT_EQ(DeviceMesh({.world = 4, .tp = 2}).label(2), "dp1 tp0");
  EXPECT_EQ(DeviceMesh({}).label(0), "rank0");
  EXPECT_EQ(mesh.group(Axis::kPp, 5).label(), "pp[1 5]");
  EXPECT_EQ(mesh.group(Axis::kDpCp, 0).label(), "dp-cp[0 2]");
}

TEST(DeviceMeshTest, ErrorsNameBothNumbersAndTheNearestLegalOnes) {
  EXPECT_THAT(mesh_error({.world = 8, .tp = 3}),
              HasSubstr("got --world-size 8, --tp 3 x --cp 1 x --pp 1 = 3; want a world of 6 or 9 "
                        "ranks, or a product that divides 8 (1, 2, 4, 8)"));
  EXPECT_THAT(mesh_error({.world = 8, .tp = 2, .dp = 3}), HasSubstr("want dp 4, or a world of 6 ranks"));
  EXPECT_THAT(mesh_error({.world = 8, .tp = 2, .ep = 3}),
              HasSubstr("got --ep 3 x --etp 1 = 3, dp 4 x --cp 1 x --tp 2 = 8; want a product among 1, 2, 4, 8"));
  EXPECT_THAT(mesh_error({.world = 8, .ep = 2, .edp = 2}), HasSubstr("want edp 4"));
  EXPECT_THAT(mesh_error({.world = 8, .tp = 0}), HasSubstr("--tp is out of range; got 0; want 1 to 131072"));
  EXPECT_THAT(mesh_error({.world = 8, .dp = -1}), HasSubstr("got --dp -1"));
  for (const char* order : {"tp-cp-dp-pp", "tp-cp-ep-dp-pp-tp", "tp-cp-ep-dp-xx", "", "tp,cp,ep,dp,pp"})
    EXPECT_THAT(mesh_error({.order = order}), HasSubstr("must name tp, cp, ep, dp and pp once each")) << order;
  EXPECT_THROW(DeviceMesh({.world = 4}).group(Axis::kTp, 4), Error);
}

}  // namespace
}  // namespace ranklab
