// The schedules against the closed forms and the rates that their papers publish.
#include "core/pipeline/schedules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/pipeline/simulate.h"
#include "core/pipeline/verify.h"
#include "tests/pipeline/all_schedules.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

double makespan(const std::string& name, const ScheduleRequest& request, const ScheduleCosts& costs) {
  return simulate(make_schedule(name, request, costs), costs).makespan;
}
double bubble(const std::string& name, const ScheduleRequest& request, const ScheduleCosts& costs) {
  return makespan(name, request, costs) - request.num_microbatches * (costs.f + costs.b + costs.w);
}
std::vector<double> peaks(const std::string& name, const ScheduleRequest& request) {
  std::vector<double> out;
  for (const StageMemory& memory : verify_schedule(make_schedule(name, request)).memory)
    out.push_back(memory.peak_activations);
  return out;
}

// F = 1, B + W = 2, p = 8: the table of unit costs.
TEST(Schedules, UnitCosts) {
  struct Row {
    const char* name;
    int m, v;
    double end, percent_of_total;
  };
  for (const Row& row : {Row{"1f1b", 8, 1, 45, 46.67},
                         {"1f1b", 16, 1, 69, 30.43},
                         {"1f1b", 32, 1, 117, 17.95},
                         {"gpipe", 8, 1, 45, 46.67},
                         {"gpipe", 32, 1, 117, 17.95},
                         {"interleaved-1f1b", 8, 2, 34.5, 30.43},
                         {"interleaved-1f1b", 16, 2, 58.5, 17.95},
                         {"interleaved-1f1b", 32, 2, 106.5, 9.86},
                         {"interleaved-1f1b", 32, 4, 101.25, 5.19},
                         {"zb-h1", 8, 1, 31, 100 * 7 / 31.},
                         {"zb-h1", 16, 1, 55, 100 * 7 / 55.},
                         {"zb-h1", 32, 1, 103, 100 * 7 / 103.}}) {
    const PipelineTimeline line = simulate(make_schedule(row.name, {8, row.m, row.v}), ScheduleCosts{});
    EXPECT_NEAR(line.end, row.end, kTiny) << row.name << " " << row.m;
    EXPECT_NEAR(line.makespan, row.end, kTiny) << row.name << " " << row.m;
    EXPECT_NEAR(100 * line.bubble_of_total(), row.percent_of_total, 0.005) << row.name << " " << row.m;
    EXPECT_NEAR(line.bubble_of_ideal(), line.makespan / (3 * row.m) - 1, kTiny);
  }
  EXPECT_THAT(peaks("1f1b", {8, 8, 1}), testing::ElementsAre(8, 7, 6, 5, 4, 3, 2, 1));
  EXPECT_THAT(peaks("zb-h1", {8, 16, 1}), testing::Each(8));
}

const ScheduleCosts kUneven = {.f = 2.5, .b = 2.25, .w = 1.5};

TEST(Schedules, ClosedFormsWithoutLatency) {
  const ScheduleCosts& c = kUneven;
  const double whole = c.f + c.b + c.w;
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 24; ++m) {
      for (const char* name : {"gpipe", "1f1b"})
        EXPECT_NEAR(makespan(name, {p, m, 1}, c), (m + p - 1) * whole, kTiny) << name << p << " " << m;
      if (m <= p) {
        for (const char* name : {"zb-h1", "zb-h2"})
          EXPECT_NEAR(makespan(name, {p, m, 1}, c), (m + p - 1) * (c.f + c.b) + c.w, kTiny) << name << p << " " << m;
      }
      if (m >= p) {
        EXPECT_NEAR(bubble("zb-h1", {p, m, 1}, c), (p - 1) * (c.f + c.b - c.w), kTiny) << p << " " << m;
      }
      if (m >= 2 * p - 1) {
        EXPECT_NEAR(bubble("zb-h2", {p, m, 1}, c), (p - 1) * (c.f + c.b - 2 * c.w), kTiny) << p << " " << m;
      }
      for (int v = 1; v <= 4; ++v) {
        if (m >= p) {
          EXPECT_NEAR(bubble("interleaved-1f1b", {p, m, v}, c), (p - 1) * whole / v, kTiny) << p << m << v;
          EXPECT_NEAR(bubble("looped-bfs", {p, m, v}, c), (p - 1) * whole / v, kTiny);
        }
      }
    }
  }
}

TEST(Schedules, ClosedFormsWithLatency) {
  ScheduleCosts c = kUneven;
  c.c = 0.125;
  const double whole = c.f + c.b + c.w;
  for (int p = 2; p <= 8; ++p) {
    for (const int m : {2 * p, 3 * p, 4 * p}) {
      EXPECT_NEAR(bubble("1f1b", {p, m, 1}, c), (p - 1) * whole + (2.0 * m * (p - 1) / p + 2 * (p - 2)) * c.c, kTiny)
          << p << " " << m;
      EXPECT_NEAR(bubble("zb-h1", {p, m, 1}, c), (p - 1) * (c.f + c.b - c.w + 4 * c.c), kTiny) << p << " " << m;
      EXPECT_NEAR(bubble("zb-h2", {p, m, 1}, c), (p - 1) * (c.f + c.b - 2 * c.w + 2 * c.c), kTiny) << p << " " << m;
      for (const int v : {2, 3})
        EXPECT_NEAR(bubble("interleaved-1f1b", {p, m, v}, c), (p - 1) * whole / v + 2 * (p * v - 1) * c.c, kTiny);
    }
  }
}

// Qi et al., arXiv 2401.10241, table 9 (inputs, ms) and table 5 (rates).
struct Published {
  int p, m;
  double f, b, w, c, rate_1f1b, rate_interleaved, rate_h1, rate_h2, rate_2p, weight_grad_memory;
};
constexpr Published kPublished[] = {
    {8, 24, 18.522, 18.086, 9.337, 0.601, .2431, .1055, .1585, .1083, .0433, .3665},
    {8, 32, 18.513, 18.086, 9.331, 0.626, .1985, .0818, .1242, .0837, .0039, .3665},
    {8, 64, 18.546, 18.097, 9.321, 0.762, .1240, .0443, .0674, .0444, .0026, .3665},
    {16, 48, 11.347, 11.248, 8.132, 0.377, .2552, .1104, .1397, .0672, .0066, .432},
    {16, 64, 11.307, 11.254, 8.101, 0.379, .2082, .0852, .1088, .0516, .0054, .432},
    {16, 128, 11.325, 11.308, 8.109, 0.378, .1251, .0445, .0576, .0266, .0028, .432},
};
// The same tables' 28.3B model, whose inputs are those with which 1F1B has the published .2646, .2168 and .1352.
constexpr Published kLargest[] = {
    {32, 96, 10.419, 10.207, 7.715, 0.408, .2646, 0, 0, 0, .0038, .432},
    {32, 128, 10.408, 10.204, 7.703, 0.408, .2168, 0, 0, 0, .0029, .432},
    {32, 256, 10.402, 10.248, 7.698, 0.460, .1352, 0, 0, 0, .0018, .432},
};
ScheduleCosts costs_of(const Published& row) {
  return {.f = row.f, .b = row.b, .w = row.w, .c = row.c, .weight_grad_memory = row.weight_grad_memory};
}

TEST(Schedules, PublishedRates) {
  for (const Published& row : kPublished) {
    const ScheduleCosts c = costs_of(row);
    const auto rate = [&](const std::string& name) {
      return simulate(make_schedule(name, {row.p, row.m, 1}, c), c).bubble_of_total();
    };
    constexpr double kFourDecimals = 0.5e-4 + 1e-9;
    EXPECT_NEAR(rate("1f1b"), row.rate_1f1b, kFourDecimals) << row.p << " " << row.m;
    EXPECT_NEAR(rate("zb-h1"), row.rate_h1, kFourDecimals) << row.p << " " << row.m;
    EXPECT_NEAR(rate("zb-h2"), row.rate_h2, kFourDecimals) << row.p << " " << row.m;
    // The paper counts p messages fewer on the interleaved schedule's way than any simulation can.
    const double published_cost = makespan("interleaved-1f1b", {row.p, row.m, 3}, c) - row.p * row.c;
    EXPECT_NEAR(1 - row.m * (row.f + row.b + row.w) / published_cost, row.rate_interleaved, kFourDecimals)
        << row.p << " " << row.m;
  }
}

TEST(Schedules, SearchedWithinTwiceTheMemoryIsAtMostThePublishedRate) {
  for (const Published& row : kPublished) {
    const ScheduleCosts c = costs_of(row);
    const Schedule schedule = make_schedule("zb-2p", {row.p, row.m, 1}, c);
    EXPECT_LT(simulate(schedule, c).bubble_of_total(), row.rate_2p + 0.5e-4) << row.p << " " << row.m;
    const ScheduleProof proof = verify_schedule(schedule, c.weight_grad_memory);
    EXPECT_THAT(proof.problems, testing::IsEmpty());
    for (const StageMemory& memory : proof.memory) EXPECT_LE(memory.peak_memory, 2 * row.p + kTiny);
  }
}

TEST(Schedules, SearchedOverManyStagesIsAtMostThePublishedRateToo) {
  for (const Published& row : kLargest) {
    const ScheduleCosts c = costs_of(row);
    EXPECT_NEAR(simulate(make_schedule("1f1b", {row.p, row.m, 1}, c), c).bubble_of_total(), row.rate_1f1b, 0.5e-4);
    const Schedule schedule = make_schedule("zb-2p", {row.p, row.m, 1}, c);
    const double rate = simulate(schedule, c).bubble_of_total();
    EXPECT_LT(rate, row.rate_2p + 0.5e-4) << row.m;
    // What no warm-up of 2p can avoid.
    const double least = (row.p - 1) * (c.f + c.b + 2 * c.c) - (2 * row.p - 1) * c.f;
    EXPECT_GE(rate, least / (row.m * (c.f + c.b + c.w) + least) - kTiny) << row.m;
    const ScheduleProof proof = verify_schedule(schedule, c.weight_grad_memory);
    EXPECT_THAT(proof.problems, testing::IsEmpty());
    for (const StageMemory& memory : proof.memory) EXPECT_LE(memory.peak_memory, 2 * row.p + kTiny);
  }
}

// Rates that the authors' own search (their fork of Megatron-LM, zbv.py) finds with these costs, half of them a stage.
// A percent more or less of F changes little.
TEST(Schedules, ZeroBubbleVIsWhatItsAuthorsSearchFinds) {
  constexpr double kFound[] = {.0703, .0543, .0298, .0498, .0381, .0195, .0531, .0404, .0220};
  std::vector<Published> rows(std::begin(kPublished), std::end(kPublished));
  rows.insert(rows.end(), std::begin(kLargest), std::end(kLargest));
  for (size_t i = 0; i < rows.size(); ++i) {
    for (const double shift : {0.99, 1.0, 1.01}) {
      ScheduleCosts c = costs_of(rows[i]);
      c.f *= shift;
      const Schedule schedule = make_schedule("zb-v", {rows[i].p, rows[i].m, 1}, c);
      EXPECT_NEAR(simulate(schedule, c).bubble_of_total(), kFound[i], shift == 1.0 ? 6e-4 : 2.5e-3)
          << rows[i].p << " " << rows[i].m;
      for (const StageMemory& memory : verify_schedule(schedule, c.weight_grad_memory).memory)
        EXPECT_LE(memory.peak_memory, rows[i].p + kTiny);
    }
  }
}

TEST(Schedules, DualPipesClosedForms) {
  for (const ScheduleCosts& c : {ScheduleCosts{}, ScheduleCosts{.f = 2.5, .b = 2.5, .w = 2.5}}) {
    const double pair = c.f + c.b + c.w, each = pair + c.b + c.w - 3 * c.w;
    const auto bubble_of = [&](const Schedule& schedule) {
      const PipelineTimeline line = simulate(schedule, c);
      return line.makespan - line.ideal;
    };
    for (const int p : {2, 4, 6, 8, 12}) {
      for (const int m : {2 * p, 2 * p + 2, 4 * p}) {
        const Schedule schedule = make_schedule("dualpipe", {p, m, 1});
        EXPECT_NEAR(bubble_of(schedule), (p / 2 - 1) * each, kTiny) << p << " " << m;
        EXPECT_THAT(peaks("dualpipe", {p, m, 1}),
                    testing::AllOf(testing::Contains(p + 1), testing::Each(testing::Le(p + 1))));
      }
    }
    for (const int p : {1, 2, 3, 4, 5, 8}) {
      for (const int m : {2 * p, 2 * p + 1, 4 * p})
        EXPECT_NEAR(bubble_of(make_schedule("dualpipe-v", {p, m, 1})), (p - 1) * each / 2, kTiny) << p << " " << m;
    }
  }
}

TEST(Schedules, TheVShapedOnesKeepTheirMemoryAndTheirBubble) {
  const ScheduleCosts c;
  for (int p = 1; p <= 16; ++p) {
    for (const int m : {2 * p, 2 * p + 1, 4 * p}) {
      EXPECT_NEAR(bubble("zb-v", {p, m, 1}, c), 0, kTiny) << p << " " << m;
      EXPECT_THAT(peaks("zb-v", {p, m, 1}), testing::Each(p)) << p << " " << m;
      const double of_1f1b = bubble("1f1b", {p, m, 1}, c);
      EXPECT_LE(bubble("v-half", {p, m, 1}, c), of_1f1b / 2 + kTiny) << p << " " << m;
      EXPECT_THAT(peaks("v-half", {p, m, 1}), testing::Each(testing::Le((p + 2) / 2))) << p << " " << m;
      EXPECT_LE(bubble("v-min", {p, m, 1}, c), of_1f1b * 2 / 3 + kTiny) << p << " " << m;
      EXPECT_THAT(peaks("v-min", {p, m, 1}), testing::Each(testing::Le((p + 4) / 3))) << p << " " << m;
    }
    EXPECT_NEAR(bubble("zb-v", {p, p, 1}, c), (p - 1) / 2.0, kTiny);
  }
}

TEST(Schedules, PeakActivations) {
  for (const int p : {1, 2, 3, 8}) {
    for (const int m : {1, 2, 3, 8, 24}) {
      const std::vector<double> one = peaks("1f1b", {p, m, 1});
      for (int i = 0; i < p; ++i) EXPECT_EQ(one[static_cast<size_t>(i)], std::min(m, p - i));
      EXPECT_THAT(peaks("gpipe", {p, m, 1}), testing::Each(m));
      EXPECT_THAT(peaks("looped-bfs", {p, m, 2}), testing::Each(m));
      EXPECT_THAT(peaks("zb-h1", {p, m, 1}), testing::Each(testing::Le(p)));
      EXPECT_THAT(peaks("zb-h2", {p, m, 1}), testing::Each(testing::Le(2 * p - 1)));
      EXPECT_THAT(peaks("zb-2p", {p, m, 1}), testing::Each(testing::Le(2 * p)));
      for (const int v : {2, 4}) {
        if (m % p != 0) continue;
        const std::vector<double> chunks = peaks("interleaved-1f1b", {p, m, v});
        for (int i = 0; i < p; ++i)
          EXPECT_NEAR(chunks[static_cast<size_t>(i)] * v, std::min(m * v, 2 * (p - i - 1) + (v - 1) * p + 1), kTiny);
      }
    }
  }
}

// As Megatron-LM orders them (get_schedule_table() of megatron/core/pipeline_parallel/schedules.py): the last group of
// a step may be smaller.
TEST(Schedules, InterleavedGroupsPassAStageTogether) {
  const auto passes = [](const Schedule& schedule, ActionKind kind) {
    std::string text;
    for (const Action& action : schedule.ranks[0])
      if (action.kind == kind) text += std::to_string(action.stage) + "." + std::to_string(action.microbatch) + " ";
    return text;
  };
  const Schedule schedule = make_schedule("interleaved-1f1b", {2, 5, 2, 3});
  EXPECT_EQ(passes(schedule, ActionKind::kF), "0.0 0.1 0.2 2.0 2.1 2.2 0.3 0.4 2.3 2.4 ");
  EXPECT_EQ(passes(schedule, ActionKind::kBW), "2.0 2.1 2.2 0.0 0.1 0.2 2.3 2.4 0.3 0.4 ");
}

TEST(Schedules, LargerGroupsHaveTheSameBubbleAndMoreInMemory) {
  for (int p = 2; p <= 5; ++p) {
    for (int m = p; m <= 4 * p; ++m) {
      for (const int v : {2, 3}) {
        for (int group = 1; group <= m; ++group) {
          if (!is_interleaved_group(group, p, m)) continue;
          SCOPED_TRACE(testing::Message() << p << " ranks, " << m << " microbatches, groups of " << group);
          const ScheduleRequest request{p, m, v, group};
          EXPECT_THAT(verify_schedule(make_schedule("interleaved-1f1b", request)).problems, testing::IsEmpty());
          EXPECT_NEAR(bubble("interleaved-1f1b", request, kUneven), (p - 1) * (kUneven.f + kUneven.b + kUneven.w) / v,
                      kTiny);
          const std::vector<double> chunks = peaks("interleaved-1f1b", request);
          for (int i = 0; i < p; ++i)
            EXPECT_LE(chunks[static_cast<size_t>(i)] * v,
                      std::min(m * v, 2 * (p - i - 1) + (v - 1) * group + 1) + kTiny);
        }
      }
    }
  }
}

// With fewer microbatches than ranks they are one group, as in PyTorch's ScheduleInterleaved1F1B.
TEST(Schedules, InterleavedTakesAnyNumberOfMicrobatches) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 20; ++m) {
      const ScheduleProof proof = verify_schedule(make_schedule("interleaved-1f1b", {p, m, 2}));
      EXPECT_THAT(proof.problems, testing::IsEmpty()) << p << " ranks, " << m << " microbatches";
    }
  }
  const auto actions = [](int m, int group) { return make_schedule("interleaved-1f1b", {4, m, 2, group}).ranks; };
  EXPECT_EQ(actions(8, 0), actions(8, 4));
  EXPECT_EQ(actions(10, 0), actions(10, 5));
  EXPECT_EQ(actions(9, 0), actions(9, 5));
  EXPECT_EQ(actions(7, 0), actions(7, 7));
}

void expect_refused(const std::string& name, const ScheduleRequest& request, const std::vector<std::string>& parts) {
  try {
    make_schedule(name, request);
    ADD_FAILURE() << name << " took it";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    for (const std::string& part : parts) EXPECT_THAT(error.what(), HasSubstr(part));
  }
}

TEST(Schedules, RefusalsNameTheNumbersAndTheNearestLegalOnes) {
  expect_refused("1f1", {4, 8, 1}, {"no such schedule", "did you mean '1f1b'"});
  expect_refused("1f1b", {0, 8, 1}, {"--pp", "got 0", "1 to 1024"});
  expect_refused("1f1b", {1025, 8, 1}, {"--pp", "got 1025"});
  expect_refused("1f1b", {4, 65537, 1}, {"--num-microbatches", "got 65537", "1 to 65536"});
  expect_refused("interleaved-1f1b", {4, 8, 65}, {"--vpp", "got 65", "1 to 64"});
  expect_refused("1f1b", {4, 8, 2}, {"--vpp", "2 stages a rank", "interleaved-1f1b"});
  expect_refused("zb-v", {4, 8, 3}, {"--vpp", "3 stages a rank", "want 2"});
  expect_refused("interleaved-1f1b", {4, 10, 2, 7}, {"groups of 7, 10 microbatches, 4 ranks", "groups of 6 or 10"});
  expect_refused("interleaved-1f1b", {4, 8, 2, 3}, {"groups of 3", "want groups of 4;"});
  expect_refused("interleaved-1f1b", {4, 3, 2, 4}, {"groups of 4, 3 microbatches", "want groups of 3;"});
  expect_refused("interleaved-1f1b", {4, 8, 2, -1}, {"groups of -1", "want groups of 4;"});
  expect_refused("looped-bfs", {4, 8, 2, 4},
                 {"--microbatch-group-size-per-virtual-pipeline-stage 4", "interleaved-1f1b"});
  expect_refused("dualpipe", {3, 8, 1}, {"3 ranks", "2 or 4", "dualpipe-v"});
  expect_refused("dualpipe", {4, 9, 1}, {"9 microbatches, 4 ranks", "8 or 10"});
  expect_refused("dualpipe-v", {4, 7, 1}, {"7 microbatches, 4 ranks", "8 or more"});
  expect_refused("gpipe", {1024, 65536, 1}, {"1024 stages x 65536 microbatches", "at most"});
  EXPECT_THROW(make_schedule("zb-2p", {4, 8, 1}, {.f = 0}), Error);
  EXPECT_THROW(make_schedule("zb-2p", {4, 8, 1}, {.w = -1}), Error);
  EXPECT_THROW(make_schedule("zb-2p", {4, 8, 1}, {.c = std::nan("")}), Error);
}

}  // namespace
}  // namespace ranklab
