// The spans of context-parallel attention: of every exchange and balance they hold each pair of a query and a key once
// a layer and direction, inside the attention module, and a run is the same with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/spec/attention_cells.h"
#include "core/trace/attention_event.h"
#include "core/trace/lanes.h"
#include "tests/support/expect_training.h"
#include "tests/support/small_config.h"

namespace ranklab {
namespace {

constexpr int kRanks = 4, kLayers = 2, kMicrobatches = 2;

TrainConfig over_ranks(ContextExchange exchange, SequenceBalance balance) {
  TrainConfig c = small_config();
  c.model.num_layers = kLayers;
  c.parallel = {.world = kRanks, .tp = 1, .cp = kRanks, .pp = 1};
  c.context_split = {exchange, balance};
  c.num_microbatches = kMicrobatches;
  return c;
}

using Cells = std::map<std::pair<int64_t, int64_t>, int64_t>;

// What the rank's queries attend to, from positions alone.
Cells expected_cells(const TrainConfig& c, int rank) {
  const SequenceBalance balance = c.context_split.balance;
  const auto queries = sequence_part(c.model.seq_length, kRanks, rank, balance);
  AttentionCells cells(c.model.seq_length, kRanks, balance);
  for (int other = 0; other < kRanks; ++other) {
    const auto keys = sequence_part(c.model.seq_length, kRanks, other, balance);
    for (const AttentionBlock& block : attention_blocks(queries, keys, 0)) cells.add(queries, keys, block);
  }
  Cells out;
  for (const AttentionCell& cell : cells.cells()) out[{cell.query, cell.key}] = cell.pairs;
  return out;
}

// Sums over a step, by the pass that the name ends with.
std::map<std::string, Cells> recorded_cells(const RankTrace& trace, int step) {
  std::map<std::string, Cells> out;
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kAttention || event.step != step) continue;
    const std::string& name = trace.names[event.name];
    const std::string pass = name.ends_with("backward") ? "backward" : name.ends_with("recompute") ? "recompute" : "";
    const std::vector<double>& numbers = trace.arrays[event.array - 1];
    double sum = 0;
    for (size_t i = kAttentionBlocks; i < numbers.size(); i += kAttentionBlockNumbers) {
      out[pass][{static_cast<int64_t>(numbers[i]), static_cast<int64_t>(numbers[i + 1])}] +=
          static_cast<int64_t>(numbers[i + 2]);
      sum += numbers[i + 2];
    }
    EXPECT_EQ(event.value, sum);
  }
  return out;
}

// Each span lies in the attention module of its direction, and no slice crosses another.
void expect_inside_modules(const RankTrace& trace) {
  for (const int lane : assign_lanes(trace.events, TraceClock::kVirtual).lanes)
    EXPECT_THAT(lane_name(lane), testing::Not(testing::StartsWith("compute #")));
  for (const Event& event : trace.events) {
    if (event.kind != EventKind::kAttention) continue;
    EXPECT_LT(event.virtual_begin_ns, event.virtual_end_ns);
    EXPECT_GE(event.microbatch, 0);
    const bool inside = std::ranges::any_of(trace.events, [&](const Event& outer) {
      return outer.kind == EventKind::kModule && trace.names[outer.name].find(".attention") != std::string::npos &&
             outer.step == event.step && outer.virtual_begin_ns <= event.virtual_begin_ns &&
             event.virtual_end_ns <= outer.virtual_end_ns;
    });
    EXPECT_TRUE(inside) << trace.names[event.name];
  }
}

Cells times(Cells cells, int64_t factor) {
  for (auto& [where, pairs] : cells) pairs *= factor;
  return cells;
}

TEST(AttentionTrace, HoldsEveryPairOnceALayerAndPass) {
  for (const ContextExchange exchange : {ContextExchange::kP2p, ContextExchange::kAllGather}) {
    for (const SequenceBalance balance :
         {SequenceBalance::kContiguous, SequenceBalance::kZigzag, SequenceBalance::kStripe}) {
      for (const char* recompute : {"none", "selective", "full"}) {
        SCOPED_TRACE(testing::Message() << name(exchange) << " " << name(balance) << " " << recompute);
        TrainConfig c = over_ranks(exchange, balance);
        c.recompute_granularity = recompute;
        const TrainingRecord run = record_training(c);
        for (int rank = 0; rank < kRanks; ++rank) {
          const RankTrace& trace = run.traces[static_cast<size_t>(rank)];
          auto cells = recorded_cells(trace, 1);
          const Cells each = times(expected_cells(c, rank), kLayers * kMicrobatches);
          EXPECT_EQ(cells[""], each);
          EXPECT_EQ(cells["backward"], each);
          EXPECT_EQ(cells["recompute"], std::string(recompute) == "none" ? Cells{} : each);
          expect_inside_modules(trace);
        }
      }
    }
  }
}

TEST(AttentionTrace, OfExchangedHeadsIsWholeSequences) {
  TrainConfig c = over_ranks(ContextExchange::kAllToAll, SequenceBalance::kZigzag);
  const TrainingRecord run = record_training(c);
  for (const RankTrace& trace : run.traces) {
    std::map<std::string, int> count;
    for (const Event& event : trace.events) {
      if (event.kind != EventKind::kAttention || event.step != 1) continue;
      ++count[trace.names[event.name]];
      EXPECT_THAT(trace.arrays[event.array - 1], testing::ElementsAre(c.model.seq_length, 1, 0, 0, 0, 0));
    }
    EXPECT_THAT(count,
                testing::ElementsAre(testing::Pair("attention all positions", kLayers * kMicrobatches),
                                     testing::Pair("attention all positions backward", kLayers * kMicrobatches)));
    expect_inside_modules(trace);
  }
}

TEST(AttentionTrace, ChangesNothing) {
  TrainConfig c = over_ranks(ContextExchange::kP2p, SequenceBalance::kContiguous);
  const TrainingRecord with = record_training(c);
  c.trace_level = "action";
  const TrainingRecord without = record_training(c);
  for (const RankTrace& trace : without.traces)
    EXPECT_TRUE(std::ranges::none_of(trace.events, [](const Event& e) { return e.kind == EventKind::kAttention; }));
  expect_same_training(with, without, kSameBits);
  EXPECT_EQ(with.steps.back().virtual_step_ms, without.steps.back().virtual_step_ms);
}

}  // namespace
}  // namespace ranklab
