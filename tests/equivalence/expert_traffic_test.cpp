// What the dispatchers put on the wire, from the events of a run: rows of dispatch are tokens x K x H x bytes for the
// all-to-all dispatcher and combine is the transpose; the deduplicated one sends between nodes what the routing
// predicts.
#include <gtest/gtest.h>

#include <map>

#include "tests/support/model_variants.h"
#include "tests/support/small_config.h"
#include "tests/support/training_record.h"

namespace ranklab {
namespace {

using Matrix = std::map<std::pair<int, int>, double>;  // from, to: bytes

// All all_to_alls of the purpose, over the whole run.
Matrix sent(const TrainingRecord& record, Purpose purpose) {
  Matrix bytes;
  for (const RankTrace& trace : record.traces) {
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kCollective || event.purpose != purpose || event.array == 0) continue;
      const std::vector<double>& to = trace.arrays[event.array - 1];
      for (const TraceGroup& group : trace.groups) {
        if (group.axis != event.axis) continue;
        for (size_t i = 0; i < to.size(); ++i) bytes[{trace.global_rank, group.global_ranks[i]}] += to[i];
      }
    }
  }
  return bytes;
}

double row_sum(const Matrix& matrix, int from) {
  double sum = 0;
  for (const auto& [pair, bytes] : matrix) sum += pair.first == from ? bytes : 0;
  return sum;
}

double between_nodes(const Matrix& matrix, int gpus_per_node) {
  double sum = 0;
  for (const auto& [pair, bytes] : matrix) sum += pair.first / gpus_per_node != pair.second / gpus_per_node ? bytes : 0;
  return sum;
}

// 16 sequences of 16 tokens, 2 layers of experts, fp64, one step.
constexpr int64_t kTokens = 16 * 16, kLayers = 2, kHidden = 32, kBytes = 8;

TrainConfig config(const char* dispatcher) {
  TrainConfig c = small_config();
  c.model.num_layers = 3;
  variant_named("in_turn").change(c.model);
  c.model.moe.force_balance = false;
  c.global_batch_size = 16;
  c.parallel = {.world = 8, .tp = 2, .ep = 8};
  c.moe_dispatcher = dispatcher;
  c.gpus_per_node = 4;
  c.train_iters = 1;
  c.num_microbatches = 2;
  return c;
}

TEST(ExpertTraffic, RowsOfDispatchAreTokensAndCombineIsTheTranspose) {
  const TrainingRecord record = record_training(config("alltoall"));
  const Matrix dispatch = sent(record, Purpose::kDispatch), combine = sent(record, Purpose::kCombine);
  const double row = static_cast<double>(kTokens / 8 * 2 * kLayers * kHidden * kBytes);
  ASSERT_EQ(dispatch.size(), 64u);
  for (int rank = 0; rank < 8; ++rank) EXPECT_EQ(row_sum(dispatch, rank), row) << rank;
  for (const auto& [pair, bytes] : dispatch) EXPECT_EQ(combine.at({pair.second, pair.first}), bytes);
  // The gradients go the other way round.
  EXPECT_EQ(sent(record, Purpose::kDispatchGrad), combine);
  EXPECT_EQ(sent(record, Purpose::kCombineGrad), dispatch);
}

// One exchange of counts, one of tokens, one of outputs.
TEST(ExpertTraffic, AForwardTakesThreeCollectives) {
  for (const char* dispatcher : {"alltoall", "allgather"}) {
    const TrainConfig c = config(dispatcher);
    for (const RankTrace& trace : record_training(c).traces) {
      int64_t calls = 0;
      for (const Event& event : trace.events) {
        const bool forward = event.purpose == Purpose::kRouting || event.purpose == Purpose::kDispatch ||
                             event.purpose == Purpose::kCombine;
        calls += event.kind == EventKind::kCollective && event.axis == Axis::kEp && forward ? 1 : 0;
      }
      EXPECT_EQ(calls, 3 * kLayers * c.num_microbatches) << dispatcher << ", rank " << trace.global_rank;
    }
  }
}

// Experts in turn: token t has experts 4 t .. 4 t + 3 modulo 8, which are the four ranks of one node.
TEST(ExpertTraffic, DeduplicatedTokensCrossToANodeOnce) {
  double crossing[2] = {};
  for (const char* dispatcher : {"alltoall", "dedup"}) {
    TrainConfig c = config(dispatcher);
    c.model.moe.topk = 4;
    c.model.moe.force_balance = true;
    crossing[std::string(dispatcher) == "dedup" ? 1 : 0] =
        between_nodes(sent(record_training(c), Purpose::kDispatch), 4);
  }
  const double tokens =
      static_cast<double>(kTokens / 2 * kLayers);  // half of them have their experts on the other node
  EXPECT_EQ(crossing[0], tokens * 4 * kHidden * kBytes);
  EXPECT_EQ(crossing[1], tokens * (kHidden + 2 * 4) * kBytes);  // with the experts and weights of each token
}

}  // namespace
}  // namespace ranklab
