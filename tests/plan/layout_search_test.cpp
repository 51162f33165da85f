// The search among layouts, over a made-up machine whose best layout is known.
#include "core/plan/search/layout_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>
#include <utility>

#include "backends/meta/meta_world.h"
#include "core/base/error.h"
#include "core/config/train_config.h"
#include "core/plan/record_step.h"
#include "core/plan/search/layout_bound.h"
#include "core/spec/presets.h"
#include "tests/runtime/tiny_run.h"

namespace ranklab {
namespace {

TrainConfig searched(int world, int64_t batch) {
  TrainConfig c;
  c.model = model_preset("llama_8b");
  c.bf16 = true;
  c.mock_data = true;
  c.parallel = {.world = world};
  c.global_batch_size = batch;
  return c;
}

TEST(LayoutCandidates, AllDivideAndResolve) {
  const TrainConfig config = searched(16, 64);
  const HardwareProfile h100 = load_hardware_profile("h100-sxm");
  const std::vector<LayoutChoice> all = layout_candidates(config, h100);
  std::set<std::pair<int, int>> sizes;
  for (const LayoutChoice& one : all) {
    TrainConfig c = config;
    one.apply(c);
    EXPECT_NO_THROW(resolve(c)) << one.flags();
    sizes.emplace(one.tp, one.pp);
  }
  EXPECT_TRUE(sizes.contains({1, 1}));
  EXPECT_TRUE(sizes.contains({8, 2}));
  EXPECT_FALSE(sizes.contains({16, 1})) << "a node has eight GPUs";
}

TEST(LayoutCandidates, NeighboursDifferInOneThingAndResolve) {
  const TrainConfig config = searched(16, 64);
  const LayoutChoice from{.tp = 2, .pp = 4, .micro_batch = 2};
  std::set<std::string> flags;
  for (const LayoutChoice& one : neighbours(config, from)) {
    TrainConfig c = config;
    one.apply(c);
    EXPECT_NO_THROW(resolve(c)) << one.flags();
    flags.insert(one.flags());
  }
  for (const char* want : {"--mbs 4", "--mbs 1", "zb-h1", "--vpp 2", "full", "--zero-stage 2"})
    EXPECT_TRUE(std::ranges::any_of(flags, [&](const std::string& text) { return text.find(want) != text.npos; }))
        << want;
}

// ep of a stage's 128 ranks hold an expert once; the others have shards of its states.
TEST(LayoutCandidates, ExpertsAreHeldByTheirOwnRanks) {
  TrainConfig config = searched(1024, 1024);
  config.model = model_preset("deepseek_v3");
  const HardwareProfile h100 = load_hardware_profile("h100-sxm");
  const auto bytes = [&](int ep, int zero) {
    return rough_cost(config, h100, {.tp = 1, .pp = 8, .ep = ep, .zero_stage = zero, .recompute = "full"}).bytes;
  };
  constexpr double kExperts = 58.0 * 256 * 3 * 7168 * 2048;
  EXPECT_NEAR(bytes(16, 0) - bytes(32, 0), 18 * kExperts / 8 * (1.0 / 16 - 1.0 / 32), 1e9);
  EXPECT_NEAR(bytes(16, 1) - bytes(32, 1), kExperts / 8 * ((6 + 12.0 / 8) / 16 - (6 + 12.0 / 4) / 32), 1e9);
}

// Fastest is tp 4, pp 2 with microbatches of 4 and zb-h1; it needs full recomputation to fit.
PlannedLayout toy_plan(const LayoutChoice& l) {
  const auto off = [](double x, double best) { return std::abs(std::log2(x / best)); };
  PlannedLayout row{.choice = l, .step_s = 0, .bytes = 0, .refused = {}};
  row.step_s = 1 + off(l.tp, 4) + off(l.pp, 2) + 0.3 * off(static_cast<double>(l.micro_batch), 4) +
               (l.schedule == "zb-h1" ? 0 : 0.2) + (l.recompute == "full" ? 0.1 : 0);
  row.bytes = l.recompute == "full" ? 40e9 : 90e9;
  if (l.tp == 8) row.refused = "not here";
  return row;
}

template <typename Plan>
LayoutPlans one_by_one(const Plan& plan) {
  return [plan](const std::vector<LayoutChoice>& choices) {
    std::vector<PlannedLayout> rows;
    for (const LayoutChoice& one : choices) rows.push_back(plan(one));
    return rows;
  };
}

TEST(LayoutSearch, FindsTheBestThatFits) {
  const TrainConfig config = searched(16, 64);
  const HardwareProfile h100 = load_hardware_profile("h100-sxm");
  int planned = 0;
  const std::vector<PlannedLayout> rows =
      search_layouts(config, h100, {.bytes = 72e9, .plans = 60}, one_by_one([&](const LayoutChoice& one) {
                       ++planned;
                       return toy_plan(one);
                     }));
  EXPECT_EQ(planned, static_cast<int>(rows.size()));
  EXPECT_LE(planned, 60);
  const LayoutChoice& best = rows.front().choice;
  EXPECT_EQ(best.tp, 4);
  EXPECT_EQ(best.pp, 2);
  EXPECT_EQ(best.micro_batch, 4);
  EXPECT_EQ(best.schedule, "zb-h1");
  EXPECT_EQ(best.recompute, "full") << "what is faster does not fit";
  std::set<std::string> flags;
  for (const PlannedLayout& row : rows) EXPECT_TRUE(flags.insert(row.choice.flags()).second) << "planned twice";
  EXPECT_FALSE(rows.back().refused.empty()) << "what cannot be comes last";
}

// All variants of tp 2 are ahead of tp 1 until that has microbatches of 2.
TEST(LayoutSearch, RefinesOtherSizesToo) {
  const auto plan = [](const LayoutChoice& l) {
    PlannedLayout row{.choice = l, .step_s = 3, .bytes = 1, .refused = {}};
    if (l.pp == 1 && l.tp == 2) row.step_s = 1.0 + 0.001 * l.zero_stage + (l.recompute == "none" ? 0 : 0.01);
    if (l.pp == 1 && l.tp == 1) row.step_s = l.micro_batch == 2 ? 0.9 : 1.2;
    return row;
  };
  const auto rows = search_layouts(searched(16, 64), load_hardware_profile("h100-sxm"), {.bytes = 72e9, .plans = 60},
                                   one_by_one(plan));
  EXPECT_EQ(rows.front().choice.tp, 1);
  EXPECT_EQ(rows.front().choice.micro_batch, 2);
}

TEST(LayoutSearch, NothingIsShardedWhereNothingIsReplicated) {
  const auto stages = [](int world, const PinnedLayout& pinned) {
    std::set<std::pair<bool, int>> found;  // whether there are replicas, and the stage
    const TrainConfig config = searched(world, 64);
    for (const PlannedLayout& row :
         search_layouts(config, load_hardware_profile("h100-sxm"), {.bytes = 1e12, .plans = 40, .pinned = pinned},
                        one_by_one(toy_plan)))
      found.emplace(has_replicas(config, row.choice), row.choice.zero_stage);
    return found;
  };
  EXPECT_EQ(stages(1, {}), (std::set<std::pair<bool, int>>{{false, 0}}));
  EXPECT_EQ(stages(1, {.zero_stage = 2}), (std::set<std::pair<bool, int>>{{false, 2}}));
  EXPECT_EQ(stages(2, {.tp = 2}), (std::set<std::pair<bool, int>>{{false, 0}}));
  const auto of_two = stages(2, {.tp = 1, .pp = 1});
  EXPECT_TRUE(of_two.contains({true, 2}));
}

TEST(LayoutSearch, WhatIsPinnedStays) {
  const PinnedLayout pinned{.tp = 4, .zero_stage = 2, .recompute = "selective"};
  const auto rows = search_layouts(searched(16, 64), load_hardware_profile("h100-sxm"),
                                   {.bytes = 72e9, .plans = 40, .pinned = pinned}, one_by_one(toy_plan));
  EXPECT_GT(rows.size(), 5u);
  for (const PlannedLayout& row : rows) {
    EXPECT_EQ(row.choice.tp, 4);
    EXPECT_EQ(row.choice.zero_stage, 2);
    EXPECT_EQ(row.choice.recompute, "selective");
  }
  const PinnedLayout replicas{.dp = 8};
  const TrainConfig config = searched(16, 64);
  for (const LayoutChoice& one : layout_candidates(config, load_hardware_profile("h100-sxm"), replicas))
    EXPECT_EQ(one.tp * one.pp, 2) << one.flags();
}

// Side by side the search plans ahead what may not be needed, and finds the same rows in the same order; and no layout
// of all that divide is better than its best.
TEST(LayoutSearch, IsTheSameHoweverManyArePlannedAtOnce) {
  const HardwareProfile h100 = load_hardware_profile("h100-sxm");
  for (const int plans : {7, 24, 60, 2000}) {
    std::vector<std::string> alone;
    for (const int at_once : {1, 2, 5, 16}) {
      size_t largest = 0;
      const auto toy = one_by_one(toy_plan);
      const auto rows = search_layouts(searched(16, 64), h100, {.bytes = 72e9, .plans = plans, .at_once = at_once},
                                       [&](const std::vector<LayoutChoice>& choices) {
                                         largest = std::max(largest, choices.size());
                                         return toy(choices);
                                       });
      std::vector<std::string> flags;
      for (const PlannedLayout& row : rows) flags.push_back(row.choice.flags());
      if (at_once == 1) alone = flags;
      EXPECT_EQ(flags, alone) << plans << " plans, " << at_once << " at once";
      EXPECT_GE(largest, static_cast<size_t>(std::min(at_once, plans / 2)));
      if (plans < 2000) continue;
      for (LayoutChoice one : layout_candidates(searched(16, 64), h100))
        for (const int64_t batch : {1, 2, 4, 8}) {
          one.micro_batch = batch, one.recompute = "full", one.schedule = "zb-h1";
          const PlannedLayout other = toy_plan(one);
          EXPECT_TRUE(!other.refused.empty() || other.step_s >= rows.front().step_s) << one.flags();
        }
    }
  }
}

// A machine on which passes take long with much tp and recomputation, and gradients and an optimizer come on top.
PlannedLayout timed_plan(const TrainConfig& config, const LayoutChoice& l) {
  PlannedLayout row{.choice = l, .refused = {}};
  row.pass_s = static_cast<double>(l.micro_batch) * (1 + 0.2 * std::log2(l.tp) + (l.recompute == "full" ? 0.3 : 0));
  const int64_t replicas = config.parallel.world / l.tp / l.pp;
  const auto microbatches = static_cast<double>(config.global_batch_size / replicas / l.micro_batch);
  const double waits = (l.pp - 1.0) / l.virtual_stages / (l.schedule == "zb-h1" ? 3 : 1);
  row.step_s = row.pass_s / l.pp * (microbatches + waits) + 0.1 * static_cast<double>(replicas) + 0.05 * l.zero_stage;
  row.bytes = 100e9 / l.tp / l.pp + (l.recompute == "none" ? 20e9 : 5e9) * static_cast<double>(l.micro_batch);
  if (l.cp > 1) row.refused = "no long sequences";
  return row;
}

// What earlier plans show to be slower is not planned; the ten best are those that planning all would find.
TEST(LayoutSearch, TheBestAreTheSameWhereSlowerOnesAreNotPlanned) {
  const HardwareProfile h100 = load_hardware_profile("h100-sxm");
  const TrainConfig config = searched(64, 256);
  for (const int plans : {24, 48, 2000}) {
    for (const int at_once : {1, 2, 5}) {
      size_t made = 0;
      const LayoutPlans plan = [&](const std::vector<LayoutChoice>& choices) {
        std::vector<PlannedLayout> rows;
        for (const LayoutChoice& one : choices) rows.push_back(timed_plan(config, one));
        made += choices.size();
        return rows;
      };
      const SearchLimits all{.bytes = 72e9, .plans = plans, .at_once = at_once};
      SearchLimits ten = all;
      ten.best = 10;
      const auto every = search_layouts(config, h100, all, plan);
      const size_t without = std::exchange(made, 0);
      const auto pruned = search_layouts(config, h100, ten, plan);
      EXPECT_LT(made, without) << plans << " plans, " << at_once << " at once";
      ASSERT_GE(pruned.size(), 10u);
      for (size_t i = 0; i < 10; ++i) {
        EXPECT_EQ(pruned[i].choice.flags(), every[i].choice.flags()) << i << " of " << plans;
        EXPECT_EQ(pruned[i].step_s, every[i].step_s);
        EXPECT_EQ(on_front(pruned, pruned[i], 72e9), on_front(every, every[i], 72e9));
      }
    }
  }
}

// The closed form of 1F1B, which no plan of a pipeline with messages can undercut.
TEST(LayoutBounds, AnotherPipelineOfTheSamePassesTakesAtLeastItsShareOfThem) {
  const TrainConfig config = searched(64, 256);
  LayoutBounds bounds;
  const LayoutChoice planned{.tp = 2, .pp = 4, .micro_batch = 2};
  EXPECT_EQ(bounds.step_at_least(config, planned), 0) << "nothing is known";
  bounds.learn(planned, 8.0);
  bounds.learn(planned, 8.5);
  LayoutChoice other = planned;
  other.pp = 8;  // 4 replicas, 32 microbatches
  EXPECT_NEAR(bounds.step_at_least(config, other), 8.0 / 8 * (32 + 7), 0.031 * 39);
  EXPECT_LT(bounds.step_at_least(config, other), 8.0 / 8 * (32 + 7));
  other.virtual_stages = 2;
  EXPECT_NEAR(bounds.step_at_least(config, other), 8.0 / 8 * (32 + 3.5), 0.031 * 36);
  other.micro_batch = 1;
  EXPECT_EQ(bounds.step_at_least(config, other), 0) << "other passes";
  EXPECT_FALSE(LayoutBounds::alike(planned, {.tp = 2, .pp = 4, .zero_stage = 3, .micro_batch = 2}));
}

TEST(LayoutSearch, TheFrontIsWhatNothingBeatsInBoth) {
  const auto row = [](double step, double bytes) {
    return PlannedLayout{.choice = {}, .step_s = step, .bytes = bytes, .refused = {}};
  };
  const std::vector<PlannedLayout> rows = {row(1, 50), row(2, 30), row(3, 40), row(0.5, 200), row(1.5, 50)};
  EXPECT_TRUE(on_front(rows, rows[0], 100)) << "the faster one does not fit";
  EXPECT_TRUE(on_front(rows, rows[1], 100));
  EXPECT_FALSE(on_front(rows, rows[2], 100));
  EXPECT_FALSE(on_front(rows, rows[4], 100)) << "as small as one that is faster";
}

// Holds for every layout that a plan of another one bounds, uneven stages, schedules that mirror or split passes
// and few microbatches among them.
TEST(LayoutBounds, AreBelowTheStepsThatAreRecorded) {
  for (const int64_t batch : {8, 16}) {
    TrainConfig config = tiny_config(8, 1);
    config.model.num_layers = 6;
    config.global_batch_size = batch;
    struct Recorded {
      LayoutChoice choice;
      double step_s, pass_s;
    };
    std::vector<Recorded> all;
    for (const int pp : {1, 2, 4}) {
      for (const char* schedule : {"1f1b", "interleaved-1f1b", "gpipe", "zb-h1", "zb-v", "dualpipe"}) {
        LayoutChoice one{.tp = 1, .pp = pp, .micro_batch = 1};
        one.schedule = schedule;
        one.virtual_stages = std::string_view(schedule) == "interleaved-1f1b" ? 2 : 1;
        TrainConfig c = config;
        one.apply(c);
        StepRecord record;
        try {
          record = record_step(resolve(c), make_meta_world);
        } catch (const Error&) {
          continue;  // more stages than layers, too few microbatches
        }
        all.push_back({one, static_cast<double>(record.step_ns) * 1e-9, static_cast<double>(record.pass_ns()) * 1e-9});
      }
    }
    EXPECT_GT(all.size(), 8u);
    int held = 0;
    for (const Recorded& planned : all) {
      LayoutBounds bounds;
      bounds.learn(planned.choice, planned.pass_s);
      for (const Recorded& other : all) {
        const double bound = bounds.step_at_least(config, other.choice);
        EXPECT_LE(bound, other.step_s) << planned.choice.flags() << " of " << other.choice.flags();
        held += bound > 0.5 * other.step_s ? 1 : 0;
      }
    }
    EXPECT_GT(held, 20) << "bounds that say something";
  }
}

}  // namespace
}  // namespace ranklab
