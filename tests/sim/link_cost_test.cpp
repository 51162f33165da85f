#include "core/sim/link_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "core/base/error.h"

namespace ranklab {
namespace {

// alpha 100 ns and 2 bytes/ns inside a node, 1000 ns and 0.5 bytes/ns across.
HardwareProfile toy_links() {
  HardwareProfile profile;
  profile.intra_node = {.latency_ns = 100, .bandwidth_bytes_per_ns = 2};
  profile.inter_node = {.latency_ns = 1000, .bandwidth_bytes_per_ns = 0.5};
  return profile;
}

LinkCost cost_of(std::vector<int> ranks, int gpus_per_node = 8) { return LinkCost(toy_links(), ranks, gpus_per_node); }

void expect_cost(const TransferCost& got, int steps, int64_t bytes, int64_t alpha, double bandwidth) {
  EXPECT_EQ(got.steps, steps);
  EXPECT_EQ(got.algorithm_bytes, bytes);
  EXPECT_EQ(got.latency_ns, steps * alpha);
  EXPECT_EQ(got.total_ns, steps * alpha + static_cast<int64_t>(static_cast<double>(bytes) / bandwidth));
}

TEST(LinkCost, ClosedFormOfEveryVerb) {
  constexpr int64_t kBytes = 8000;
  for (const int n : {2, 4, 8}) {
    std::vector<int> ranks;
    for (int r = 0; r < n; ++r) ranks.push_back(r);
    const LinkCost cost = cost_of(ranks);
    expect_cost(cost.collective(Verb::kAllReduce, kBytes), 2 * (n - 1), 2 * (n - 1) * kBytes / n, 100, 2);
    expect_cost(cost.collective(Verb::kReduceScatter, kBytes), n - 1, (n - 1) * kBytes / n, 100, 2);
    expect_cost(cost.collective(Verb::kAllGather, kBytes), n - 1, (n - 1) * kBytes / n, 100, 2);
    expect_cost(cost.collective(Verb::kAllToAll, kBytes), n - 1, kBytes, 100, 2);
    expect_cost(cost.collective(Verb::kBroadcast, kBytes), n - 1, kBytes, 100, 2);
    expect_cost(cost.collective(Verb::kSend, kBytes), 1, kBytes, 100, 2);
    expect_cost(cost.collective(Verb::kRecv, kBytes), 1, kBytes, 100, 2);
    expect_cost(cost.message(0, n - 1, kBytes), 1, kBytes, 100, 2);
  }
}

TEST(LinkCost, LinksInsideAndBetweenNodesCarryAnExchangeAtTheSameTime) {
  const LinkCost one_node = cost_of({0, 1, 2, 3}), two_nodes = cost_of({0, 1, 2, 3}, 2);
  const std::vector<int64_t> bytes = {900, 800, 300, 400};  // to each member
  EXPECT_EQ(one_node.exchange_bytes(bytes, 0), 1500) << "what stays is free";
  const double slower = toy_links().inter_node.bandwidth_bytes_per_ns / toy_links().intra_node.bandwidth_bytes_per_ns;
  ASSERT_LT(slower, 0.5);
  EXPECT_EQ(two_nodes.exchange_bytes(bytes, 0), 700) << "the other node's, the own one's meanwhile";
  EXPECT_EQ(two_nodes.exchange_bytes(std::vector<int64_t>{0, 8000, 0, 0}, 0), static_cast<int64_t>(8000 * slower));
}

TEST(LinkCost, BarrierTakesTwoLogSteps) {
  for (const auto& [n, steps] : std::vector<std::pair<int, int>>{{2, 2}, {3, 4}, {4, 4}, {5, 6}, {8, 6}}) {
    std::vector<int> ranks(static_cast<size_t>(n));
    for (int r = 0; r < n; ++r) ranks[static_cast<size_t>(r)] = r;
    expect_cost(cost_of(ranks).collective(Verb::kBarrier, 0), steps, 0, 100, 2);
  }
}

TEST(LinkCost, AllReduceIsReduceScatterThenAllGather) {
  const LinkCost cost = cost_of({0, 1, 2, 3});
  for (const int64_t bytes : {0, 16, 4000, 1 << 20}) {
    const TransferCost whole = cost.collective(Verb::kAllReduce, bytes);
    const TransferCost scatter = cost.collective(Verb::kReduceScatter, bytes);
    const TransferCost gather = cost.collective(Verb::kAllGather, bytes);
    EXPECT_EQ(whole.total_ns, scatter.total_ns + gather.total_ns);
    EXPECT_EQ(whole.algorithm_bytes, scatter.algorithm_bytes + gather.algorithm_bytes);
  }
}

TEST(LinkCost, AGroupAcrossNodesIsBoundByTheSlowestHop) {
  const LinkCost cost = cost_of({0, 1, 2, 3}, 2);
  EXPECT_TRUE(cost.crosses_nodes());
  expect_cost(cost.collective(Verb::kAllReduce, 8000), 6, 12000, 1000, 0.5);
  expect_cost(cost.message(0, 1, 8000), 1, 8000, 100, 2);
  expect_cost(cost.message(1, 2, 8000), 1, 8000, 1000, 0.5);
  EXPECT_FALSE(cost_of({2, 3}, 2).crosses_nodes());
}

// Megatron without sequence parallelism: eight ranks hold the same, each sends an eighth, and their node gathers it.
TEST(LinkCost, RanksThatHoldTheSameSendPartsOfIt) {
  HardwareProfile whole = load_hardware_profile("a100-80", Efficiency::kMeasured), parts = whole;
  parts.software.terms.message_parts = 8;
  const std::vector<int> stages = {0, 8};
  constexpr int64_t kBytes = 64 << 20;
  const auto ns = [&](const HardwareProfile& profile, Axis axis, int gpus_per_node) {
    return static_cast<double>(LinkCost(profile, stages, gpus_per_node, axis).message(0, 1, kBytes).total_ns);
  };
  const double eighth = kBytes / 8.0 / (25 * 0.8), gathered = kBytes * 7 / 8.0 / 174.9;
  constexpr double kStarts = 8177 + 914 + 5000 + 37080;
  EXPECT_NEAR(ns(parts, Axis::kPp, 8), kStarts + eighth + gathered, 10);
  EXPECT_GT(ns(whole, Axis::kPp, 8), 3 * ns(parts, Axis::kPp, 8));
  EXPECT_EQ(ns(parts, Axis::kCp, 8), ns(whole, Axis::kCp, 8)) << "they hold different heads";
  EXPECT_EQ(ns(parts, Axis::kPp, 16), ns(whole, Axis::kPp, 16)) << "within a node nothing is gained";
}

// A host's cost to send and receive does not depend on the link, and applies to pipelines only.
TEST(LinkCost, AMessageBetweenStagesWaitsForItsHosts) {
  HardwareProfile plain = load_hardware_profile("a100-80", Efficiency::kMeasured), hosts = plain;
  hosts.software.terms.message_us = 400;
  const std::vector<int> stages = {0, 1};
  const auto ns = [&](const HardwareProfile& profile, Axis axis, int64_t bytes) {
    return LinkCost(profile, stages, 8, axis).message(0, 1, bytes).total_ns;
  };
  for (const int64_t bytes : {1 << 10, 64 << 20})
    EXPECT_EQ(ns(hosts, Axis::kPp, bytes) - ns(plain, Axis::kPp, bytes), 400'000) << bytes;
  EXPECT_EQ(ns(hosts, Axis::kCp, 1 << 20), ns(plain, Axis::kCp, 1 << 20));
}

// ZeRO's shards have a factor of their own; what other groups gather does not.
TEST(LinkCost, OnlyZerosShardsAreSlowerBetweenNodes) {
  HardwareProfile plain = load_hardware_profile("a100-80", Efficiency::kMeasured), slower = plain;
  slower.software.terms.sharded_across_nodes = 10;
  const std::vector<int> ranks = {0, 8};
  const auto ns = [&](const HardwareProfile& profile, Axis axis, Verb verb) {
    return static_cast<double>(LinkCost(profile, ranks, 8, axis).collective(verb, 64 << 20).total_ns);
  };
  for (const Axis axis : {Axis::kDp, Axis::kDpCp, Axis::kDpShard, Axis::kEdp, Axis::kEdpShard}) {
    for (const Verb verb : {Verb::kAllGather, Verb::kReduceScatter})
      EXPECT_GT(ns(slower, axis, verb), 8 * ns(plain, axis, verb)) << name(axis);
    EXPECT_EQ(ns(slower, axis, Verb::kAllReduce), ns(plain, axis, Verb::kAllReduce)) << name(axis);
  }
  for (const Axis axis : {Axis::kTp, Axis::kCp, Axis::kEp, Axis::kEtp})
    EXPECT_EQ(ns(slower, axis, Verb::kAllGather), ns(plain, axis, Verb::kAllGather)) << name(axis);
}

// For a few bytes a ring over many nodes is steps alone, and a tree has fewer; for many bytes its rate is lower.
TEST(LinkCost, SmallSumsOfManyNodesGoUpATree) {
  HardwareProfile h100 = load_hardware_profile("h100-sxm", Efficiency::kMeasured);
  h100.inter_node.bandwidth_bytes_per_ns = 25;  // narrower than NVLink, for either verb
  std::vector<int> ranks(1024);
  std::iota(ranks.begin(), ranks.end(), 0);
  const LinkCost cost(h100, ranks, 8);
  const auto ns = [&](Verb verb, int64_t bytes) { return static_cast<double>(cost.collective(verb, bytes).total_ns); };
  const double ring = 2 * ns(Verb::kAllGather, 1 << 10), tree = ns(Verb::kAllReduce, 1 << 10);
  EXPECT_LT(tree, 0.2 * ring);
  EXPECT_GT(tree, 2 * 5e3 * std::log2(128)) << "up and down as many steps as the number of nodes has digits";
  constexpr int64_t kMany = int64_t{64} << 30;
  EXPECT_NEAR(ns(Verb::kAllReduce, kMany) / (2 * ns(Verb::kAllGather, kMany)), 1, 0.01);
}

TEST(LinkCost, AGroupOfOneIsFree) {
  const TransferCost cost = cost_of({5}).collective(Verb::kAllReduce, 1 << 20);
  EXPECT_EQ(cost.total_ns, 0);
  EXPECT_EQ(cost.algorithm_bytes, 0);
  EXPECT_EQ(cost_of({0, 1}).message(1, 1, 100).total_ns, 0);
}

TEST(LinkCost, ANodeNeedsGpus) { EXPECT_THROW(cost_of({0, 1}, 0), Error); }

}  // namespace
}  // namespace ranklab
