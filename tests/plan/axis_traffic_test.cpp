// Traffic by hand: pipeline boundaries, context parallelism, experts, and bytes across nodes.
#include <gtest/gtest.h>

#include <map>

#include "backends/meta/meta_world.h"
#include "core/base/error.h"
#include "core/parallel/expert/token_spread.h"
#include "core/plan/record_step.h"
#include "core/plan/report/axis_traffic.h"
#include "core/spec/moe_dispatcher_names.h"
#include "core/spec/presets.h"

namespace ranklab {
namespace {

// 4 layers, hidden 64, 8 heads of 8, 2 key/value heads: 16 wide; 32 positions, 2 sequences: T = 64 tokens; fp32; three
// microbatches.
TrainConfig config(ParallelDims dims) {
  TrainConfig c;
  c.model = {.num_layers = 4,
             .hidden_size = 64,
             .ffn_hidden_size = 96,
             .num_attention_heads = 8,
             .num_query_groups = 2,
             .vocab_size = 256,
             .seq_length = 32};
  c.parallel = dims;
  c.sequence_parallel = false;
  c.micro_batch_size = 2;
  c.global_batch_size = 3 * 2 * (dims.world / dims.tp / dims.pp);
  c.mock_data = true;
  return c;
}

RankTraffic traffic(const TrainConfig& c, int pp_rank = 0) {
  return record_step(resolve(c), make_meta_world).of_pipeline_rank(pp_rank).traffic.calls;
}

AxisTraffic row(TrainConfig c, Axis axis, int gpus_per_node) {
  c.gpus_per_node = gpus_per_node;
  const RunPlan plan = resolve(c);
  for (const AxisTraffic& found : axis_traffic(record_step(plan, make_meta_world), plan)) {
    if (found.axis == axis) return found;
  }
  ADD_FAILURE() << "no row for " << name(axis);
  return {};
}

TEST(Pipeline, PipelineBoundariesCarryBsh) {
  const TrainConfig c = config({.world = 4, .pp = 4});
  constexpr int64_t kBoundary = 2 * 32 * 64 * 4;
  for (const auto& [stage, sends] : {std::pair{0, 3}, {1, 6}, {2, 6}, {3, 3}}) {
    const VerbTraffic sent = traffic(c, stage).at({Axis::kPp, Verb::kSend});
    EXPECT_EQ(sent.calls, sends) << "three microbatches to each neighbour of stage " << stage;
    EXPECT_EQ(sent.logical_bytes, sends * kBoundary);
  }
  // Three boundaries, three microbatches, two directions. Nodes of two: only the boundary in the middle crosses. The
  // norm's 8 bytes are summed around the ring of four: two of its edges cross, 12 bytes a rank.
  const AxisTraffic pp = row(c, Axis::kPp, 2);
  EXPECT_EQ(pp.total_bytes, 3 * 3 * 2 * kBoundary + 4 * 12);
  EXPECT_EQ(pp.bytes_across_nodes, 3 * 2 * kBoundary + 2 * 12);
}

TEST(Pipeline, TensorParallelRanksShareTheBoundary) {
  TrainConfig c = config({.world = 4, .tp = 2, .pp = 2});
  EXPECT_EQ(traffic(c).at({Axis::kPp, Verb::kSend}).logical_bytes, 3 * 16384);
  c.sequence_parallel = true;
  EXPECT_EQ(traffic(c).at({Axis::kPp, Verb::kSend}).logical_bytes, 3 * 16384 / 2);
}

// K and V of a quarter of the positions: 2 sequences, 8 positions, 2 x 16 wide, fp32.
constexpr int64_t kKeyValueBytes = 2 * 8 * 2 * 16 * 4;

RankTraffic context_traffic(ContextExchange exchange) {
  TrainConfig c = config({.world = 4, .cp = 4});
  c.global_batch_size = 3 * 2;
  c.context_split.exchange = exchange;
  return traffic(c);
}

TEST(ContextParallelism, ARingPassesKeysAndValuesAndTheirGradients) {
  const RankTraffic calls = context_traffic(ContextExchange::kP2p);
  const VerbTraffic passes = calls.at({Axis::kCp, Verb::kSend});
  EXPECT_EQ(passes.calls, 3 * 4 * (3 + 3 + 4)) << "microbatches x layers x (forward, again backward, gradients)";
  EXPECT_EQ(passes.logical_bytes, passes.calls * kKeyValueBytes);
  EXPECT_TRUE(calls.contains({Axis::kDpCp, Verb::kAllReduce})) << "weights are replicated over cp";
  EXPECT_FALSE(calls.contains({Axis::kDp, Verb::kAllReduce}));
}

TEST(ContextParallelism, GatheringTakesKeysAndValuesOnceEachWay) {
  const RankTraffic calls = context_traffic(ContextExchange::kAllGather);
  const VerbTraffic gathers = calls.at({Axis::kCp, Verb::kAllGather});
  EXPECT_EQ(gathers.calls, 3 * 4 * 2) << "forward, and again backward";
  EXPECT_EQ(gathers.ring_bytes, gathers.calls * 3 * kKeyValueBytes) << "2 K b s (n-1) / n";
  const VerbTraffic scatters = calls.at({Axis::kCp, Verb::kReduceScatter});
  EXPECT_EQ(scatters.calls, 3 * 4);
  EXPECT_EQ(scatters.ring_bytes, scatters.calls * 3 * kKeyValueBytes);
}

// Two key/value heads on four ranks: each goes to the two ranks whose queries read it.
TEST(ContextParallelism, HeadsChangePlacesWithPositions) {
  const RankTraffic calls = context_traffic(ContextExchange::kAllToAll);
  const VerbTraffic moved = calls.at({Axis::kCp, Verb::kAllToAll});
  EXPECT_EQ(moved.calls, 3 * 4 * 2 * 2) << "queries, keys and values; the output; and back";
  const int64_t positions = 2 * 8, qkv = 64 + 2 * (2 * 16), out = 64;
  EXPECT_EQ(moved.ring_bytes, 3 * 4 * 2 * positions * (qkv + out) * 4 * 3 / 4) << "(2 H + 2 K) b s / n (n-1) / n";
}

// Pairs exchange the heads of a quarter of the positions, then the pairs pass on what half of the heads read.
TEST(ContextParallelism, TwoLevelsAreARingOfGroupsThatExchangeHeads) {
  const RankTraffic calls = context_traffic(ContextExchange::kAllToAllP2p);
  EXPECT_FALSE(calls.contains({Axis::kCp, Verb::kSend}));
  const VerbTraffic moved = calls.at({Axis::kCpHeads, Verb::kAllToAll});
  const int64_t positions = 2 * 8, qkv = 64 + 2 * 16, out = 64;
  EXPECT_EQ(moved.ring_bytes, 3 * 4 * 2 * positions * (qkv + out) * 4 / 2) << "(2 H + 2 K) b s / n (i-1) / i";
  const VerbTraffic passes = calls.at({Axis::kCpRing, Verb::kSend});
  EXPECT_EQ(passes.calls, 3 * 4 * (1 + 1 + 2));
  EXPECT_EQ(passes.logical_bytes, passes.calls * kKeyValueBytes) << "half as wide, twice as long";
}

// Compressed to 8 numbers a position, and 4 that all heads share, of two sequences of 8 positions a rank.
RankTraffic latent_traffic(ContextExchange exchange) {
  TrainConfig c = config({.world = 4, .cp = 4});
  c.global_batch_size = 3 * 2;
  c.model.num_query_groups = 0;
  c.model.mla = {.kv_lora_rank = 8, .qk_head_dim = 8, .qk_pos_emb_head_dim = 4, .v_head_dim = 8};
  c.context_split.exchange = exchange;
  return traffic(c);
}
constexpr int64_t kLatentBytes = (2 * 8) * (8 + 4) * 4;

TEST(ContextParallelism, LatentsAreGatheredInsteadOfHeads) {
  const RankTraffic calls = latent_traffic(ContextExchange::kAllGather);
  const VerbTraffic gathers = calls.at({Axis::kCp, Verb::kAllGather});
  EXPECT_EQ(gathers.calls, 3 * 4 * 2) << "forward, and again backward";
  EXPECT_EQ(gathers.ring_bytes, gathers.calls * 3 * kLatentBytes);
  const VerbTraffic scatters = calls.at({Axis::kCp, Verb::kReduceScatter});
  EXPECT_EQ(scatters.calls, 3 * 4);
  EXPECT_EQ(scatters.ring_bytes, scatters.calls * 3 * kLatentBytes);
}

TEST(ContextParallelism, ARingPassesLatentsInsteadOfHeads) {
  const VerbTraffic passes = latent_traffic(ContextExchange::kP2p).at({Axis::kCp, Verb::kSend});
  EXPECT_EQ(passes.calls, 3 * 4 * (3 + 3 + 4)) << "as of heads";
  EXPECT_EQ(passes.logical_bytes, passes.calls * kLatentBytes);
}

TEST(Experts, ExchangeTopKTokens) {
  TrainConfig s = config({.world = 4, .ep = 4});
  s.model.moe = {.num_experts = 8, .topk = 2};
  const RankTraffic calls = traffic(s);
  const VerbTraffic moved = calls.at({Axis::kEp, Verb::kAllToAll});
  EXPECT_EQ(moved.calls, 3 * 4 * 4) << "microbatches x layers x (dispatch and combine, forward and backward)";
  EXPECT_EQ(moved.logical_bytes, moved.calls * (64 * 2 * 64 * 4));
  EXPECT_EQ(moved.ring_bytes, moved.logical_bytes / 4 * 3) << "a quarter stays";
  const VerbTraffic counts = calls.at({Axis::kEp, Verb::kAllGather});
  EXPECT_EQ(counts.calls, 3 * 4);
  EXPECT_EQ(counts.logical_bytes, counts.calls * 4 * 8 * 8) << "eight counts of each of four ranks";
  EXPECT_FALSE(calls.contains({Axis::kEdp, Verb::kAllReduce})) << "edp is 1: nobody else holds these experts";
  const AxisTraffic ep = row(s, Axis::kEp, 2);
  // In an all_to_all two of three peers sit on the other node; in the rings around the four (counts, and the norm's 8
  // bytes) two edges cross.
  EXPECT_EQ(ep.bytes_across_nodes, 4 * (moved.ring_bytes * 2 / 3) + 2 * (counts.ring_bytes + 12));
}

TEST(Experts, ExpertTensorParallelismGathersRoutedTokens) {
  TrainConfig s = config({.world = 4, .tp = 2, .ep = 2, .etp = 2});
  s.model.moe = {.num_experts = 2, .topk = 2};
  s.sequence_parallel = true;
  const RankTraffic calls = traffic(s);
  const int64_t passes = 3 * 4, rows = 32 * 2 * 2 * 64 * 4;
  EXPECT_EQ(calls.at({Axis::kEtp, Verb::kAllGather}).calls, 3 * passes) << "counts, rows, and their gradients";
  EXPECT_EQ(calls.at({Axis::kEtp, Verb::kAllGather}).logical_bytes, passes * (2 * rows + 2 * 1 * 8));
  EXPECT_EQ(calls.at({Axis::kEtp, Verb::kReduceScatter}).logical_bytes, passes * 2 * rows);
}

// Hidden 64, expert 32 wide: 3 x 64 x 32 elements each; 8 experts on 4 ep ranks, two replicas of each.
TEST(Experts, GradientsAreReducedWhereTheExpertIsReplicated) {
  TrainConfig s = config({.world = 8, .ep = 4});
  s.model.moe = {.num_experts = 8, .topk = 2, .ffn_hidden_size = 32, .first_dense_layers = 1};
  const RankTraffic calls = traffic(s);
  EXPECT_EQ(calls.at({Axis::kEdp, Verb::kAllReduce}).logical_bytes, 3 * 2 * (3 * 64 * 32) * 4)
      << "layers with experts x own experts";
  const int64_t attention = 64 * (64 + 2 * 16) + 64 * 64 + 2 * 64, dense = 3 * 64 * 96, router = 8 * 64;
  const int64_t elements = 2 * 256 * 64 + 64 + 4 * attention + dense + 3 * router;
  const int64_t loads = 4 * (8 + 3) * 8;  // of each layer: eight counts, drops and two losses
  EXPECT_EQ(calls.at({Axis::kDp, Verb::kAllReduce}).logical_bytes, elements * 4 + loads);
}

TEST(Experts, TheRoutersLossCountsOverItsGroups) {
  TrainConfig s = config({.world = 4, .tp = 2, .ep = 2});
  s.sequence_parallel = true;
  s.model.moe = {.num_experts = 4, .topk = 2};
  const auto reduced = [&](Axis axis) { return traffic(s)[{axis, Verb::kAllReduce}]; };
  const VerbTraffic tp = reduced(Axis::kTp), dp = reduced(Axis::kDp);
  s.model.moe.aux_loss_coeff = 1e-3;
  s.model.moe.balancing = LoadBalancing::kSeqAuxLoss;
  EXPECT_EQ(reduced(Axis::kTp).logical_bytes - tp.logical_bytes, 3 * 4 * 2 * 4 * 8) << "four counts of two sequences";
  EXPECT_EQ(reduced(Axis::kDp), dp);
  s.model.moe.balancing = LoadBalancing::kGlobalAuxLoss;
  EXPECT_EQ(reduced(Axis::kTp).logical_bytes - tp.logical_bytes, 3 * 4 * 4 * 8);
  EXPECT_EQ(reduced(Axis::kDp).logical_bytes - dp.logical_bytes, 3 * 4 * 4 * 8);
}

// With four experts on two places, a token's two experts lie on one place in 2 of 6 cases.
TEST(RowSpread, IsTheChanceOfAPlace) {
  EXPECT_DOUBLE_EQ(chance_of_place({.num_experts = 4, .topk = 2}, 2), 1 - 1.0 / 6);
  EXPECT_DOUBLE_EQ(chance_of_place({.num_experts = 4, .topk = 1}, 1), 1.0 / 4);
  EXPECT_DOUBLE_EQ(chance_of_place({.num_experts = 8, .topk = 8}, 2), 1);
  EXPECT_DOUBLE_EQ(chance_of_place({.num_experts = 8, .topk = 2}, 8), 1);
  // Two of four groups, a place each: the four experts of a token's groups on two places.
  EXPECT_DOUBLE_EQ(chance_of_place({.num_experts = 8, .topk = 2, .num_groups = 4, .group_topk = 2}, 2),
                   (1 - 1.0 / 6) / 2);
  // In turn: neighbours.
  EXPECT_DOUBLE_EQ(chance_of_place({.num_experts = 8, .topk = 4, .force_balance = true}, 2), 0.5);
  EXPECT_DOUBLE_EQ(chance_of_place({.num_experts = 8, .topk = 2, .force_balance = true}, 4), 0.5);
  // DeepSeek-V3 on eight nodes, a group each: 3.6 of the 4 nodes that a token may use.
  EXPECT_NEAR(8 * chance_of_place(model_preset("deepseek_v3").moe, 256 / 8), 3.62, 0.01);
  // All copies find a place, more of them where a token goes more often.
  EXPECT_EQ((RowSpread{.places = {0, 1, 2}, .chances = {0.25, 0.5, 0.25}}.parts(10)), (std::vector<int64_t>{3, 5, 2}));
}

TEST(Dispatchers, AreAllPlanned) {
  TrainConfig s = config({.world = 8, .ep = 8});
  s.model.moe = {.num_experts = 8, .topk = 4};
  std::map<std::string, AxisTraffic> rows;
  for (const std::string& name : moe_dispatcher_names()) {
    s.moe_dispatcher = name;
    rows[name] = row(s, Axis::kEp, 4);
  }
  // A token goes to four ranks, two of them on the other node, and to that node once in 69 of 70 cases.
  EXPECT_LT(rows["dedup"].bytes_across_nodes, rows["rdep"].bytes_across_nodes / 2);
  EXPECT_LT(rows["rdep"].total_bytes, 1.2 * static_cast<double>(rows["alltoall"].total_bytes));
  EXPECT_GT(rows["allgather"].total_bytes, 1.5 * static_cast<double>(rows["alltoall"].total_bytes));
  s.moe_dispatcher = "none";
  EXPECT_THROW(row(s, Axis::kEp, 4), Error);
}

// Groups of four on nodes of six: all on one node, two and two, all on one node. The rank that is recorded for all is
// of the second, whose exchanges take longest.
TEST(Dispatchers, AreCountedWhereGroupsDoNotLieAlike) {
  TrainConfig s = config({.world = 12, .ep = 4});
  s.model.moe = {.num_experts = 8, .topk = 2};
  const RankTraffic calls = traffic(s);
  const int64_t sent = calls.at({Axis::kEp, Verb::kAllToAll}).ring_bytes;
  // Two edges of the ring of four.
  const auto rings = [&](const RankTraffic& of) {
    int64_t bytes = 0;
    for (const auto& [key, traffic] : of)
      if (key.first == Axis::kEp && key.second != Verb::kAllToAll) bytes += 2 * traffic.ring_bytes;
    return bytes;
  };
  EXPECT_EQ(row(s, Axis::kEp, 6).bytes_across_nodes, 4 * (sent * 2 / 3) + rings(calls));
  // On nodes of three 3 and 1, 2 and 2, 1 and 3 members: six, eight and six of twelve pairs, of which a message each.
  EXPECT_EQ(row(s, Axis::kEp, 3).bytes_across_nodes,
            2 * (3 * (sent / 3) + sent) + 4 * (sent * 2 / 3) + 3 * rings(calls));

  // Of the experts of a token's two, four of eight are on the other node with the chance 1 - 6 / 28, two with 1 - 15 /
  // 28 and six with 1 - 1 / 28.
  s.moe_dispatcher = "dedup";
  s.gpus_per_node = 6;
  s.micro_batch_size = 16;  // counts of rows are rounded
  s.global_batch_size *= 8;
  const RankTraffic dedup = traffic(s);
  const double even = static_cast<double>(row(s, Axis::kEp, 6).bytes_across_nodes - rings(dedup));
  const double uneven = static_cast<double>(row(s, Axis::kEp, 3).bytes_across_nodes - 3 * rings(dedup));
  EXPECT_NEAR(uneven / even, 1 + 2 * (3 * 13 + 27) / (4 * 22.0), 0.03);
}

// 64 tokens of each of seven ranks go to seven experts: the first gets 10 from each, the others 9, fewer than the mean.
TEST(Dispatchers, ArePlannedByARankThatGetsFewerTokensThanTheMean) {
  TrainConfig s = config({.world = 7, .ep = 7});
  s.model.moe = {.num_experts = 7, .topk = 1};
  for (const std::string& name : moe_dispatcher_names()) {
    s.moe_dispatcher = name;
    EXPECT_NO_THROW(record_step(resolve(s), [](const StandIns&) { return make_meta_world(StandIns(7, 6)); })) << name;
  }
}

// Every rank must know of an overflow on any other: one number of fp32, and no other precision asks.
TEST(LossScale, OverflowsAreAskedOfTheWholeWorld) {
  TrainConfig c = config({.world = 4, .tp = 2, .pp = 2});
  c.precision.fp16 = true;
  const AxisTraffic asked = row(c, Axis::kWorld, 2);
  EXPECT_EQ(asked.group_size, 4);
  EXPECT_EQ(asked.per_rank.calls, 1);
  EXPECT_EQ(asked.per_rank.logical_bytes, 4);
  EXPECT_EQ(asked.total_bytes, 4 * 2 * 3 * 4 / 4);             // a ring of four ranks: 2 (n - 1) / n of it each
  EXPECT_EQ(asked.bytes_across_nodes, asked.total_bytes / 2);  // two of its four edges
  c.precision.fp16 = false;
  for (const AxisTraffic& other : axis_traffic(record_step(resolve(c), make_meta_world), resolve(c)))
    EXPECT_NE(other.axis, Axis::kWorld);
}

TEST(NodeCrossing, ARingCrossesOncePerNode) {
  // tp 2 x dp 4 on nodes of 4: each dp ring 0 2 4 6 has two edges between the two nodes, tp pairs have none.
  const TrainConfig s = config({.world = 8, .tp = 2});
  const AxisTraffic dp = row(s, Axis::kDp, 4);
  EXPECT_EQ(dp.groups, 2);
  EXPECT_EQ(dp.groups_across_nodes, 2);
  EXPECT_EQ(dp.total_bytes, 8 * dp.per_rank.ring_bytes);
  EXPECT_EQ(dp.bytes_across_nodes, 2 * 2 * dp.per_rank.ring_bytes);
  EXPECT_EQ(dp.per_rank.ring_bytes * 4, dp.per_rank.logical_bytes * 2 * 3);
  EXPECT_EQ(row(s, Axis::kTp, 4).bytes_across_nodes, 0);
  EXPECT_EQ(row(s, Axis::kTp, 8).bytes_across_nodes, 0);
  EXPECT_EQ(row(s, Axis::kDp, 8).bytes_across_nodes, 0);
  EXPECT_EQ(row(s, Axis::kDp, 2).bytes_across_nodes, 2 * 4 * dp.per_rank.ring_bytes) << "every edge";
}

TEST(NodeCrossing, RankOrderDecidesWhichAxisStaysInside) {
  TrainConfig s = config({.world = 8, .tp = 2, .order = "dp-tp-cp-ep-pp"});
  EXPECT_EQ(row(s, Axis::kDp, 4).bytes_across_nodes, 0);
  EXPECT_GT(row(s, Axis::kTp, 4).bytes_across_nodes, 0);
}

}  // namespace
}  // namespace ranklab
