// Breakpoints as text: what is read is written again, what is not understood is named with the nearest word.
#include "core/live/stepper_breakpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/live/stepper_state.h"

namespace ranklab {
namespace {

using testing::HasSubstr;

struct Spelling {
  const char* text;
  const char* canonical;
};
class BreakpointTextTest : public testing::TestWithParam<Spelling> {};
INSTANTIATE_TEST_SUITE_P(
    All, BreakpointTextTest,
    testing::Values(Spelling{"F mb=3 rank=2", "F rank=2 mb=3"}, Spelling{"  stage=1   W ", "W stage=1"},
                    Spelling{"all_to_all", "all_to_all"}, Spelling{"axis=dp rank=0", "axis=dp rank=0"},
                    Spelling{"rank 3", "rank=3"}, Spelling{"step 12", "step=12"},
                    Spelling{"optimizer step=2", "optimizer step=2"}, Spelling{"microbatch=4", "mb=4"},
                    Spelling{"loss is nan", "loss is nan"}, Spelling{"loss>6", "loss > 6"},
                    Spelling{"grad_norm < 0.125 step=3", "grad_norm < 0.125 step=3"},
                    Spelling{"wait > 2ms rank=3", "wait > 2ms rank=3"}, Spelling{"wait > 1.5us", "wait > 1500ns"},
                    Spelling{"memory/activations > 100MiB", "memory/activations > 100MiB"},
                    Spelling{"memory > 2GB", "memory > 2GB"}, Spelling{"memory > 7", "memory > 7B"},
                    Spelling{"loss > 1e300", "loss > 1.0000000000000001e+300"}));

TEST_P(BreakpointTextTest, ReadsAndWritesBack) {
  const Breakpoint read = parse_breakpoint(GetParam().text);
  EXPECT_EQ(to_text(read), GetParam().canonical);
  EXPECT_EQ(parse_breakpoint(to_text(read)), read);
}

struct Refusal {
  const char* text;
  const char* part;
};
class BreakpointRefusalTest : public testing::TestWithParam<Refusal> {};
INSTANTIATE_TEST_SUITE_P(
    All, BreakpointRefusalTest,
    testing::Values(Refusal{"", "nothing to stop at"}, Refusal{"allreduce", "did you mean 'all_reduce'?"},
                    Refusal{"optimiser", "did you mean 'optimizer'?"}, Refusal{"F B", "two events"},
                    Refusal{"axis=tpp", "did you mean 'tp'?"}, Refusal{"rank=x", "rank needs a number"},
                    Refusal{"rank=-1", "0 or more"}, Refusal{"rank=1 rank=2", "rank is given twice"},
                    Refusal{"axis=tp axis=dp", "axis is given twice"},
                    Refusal{"rank=99999999999", "rank needs a number"}, Refusal{"rnak=3", "did you mean 'rank'?"},
                    Refusal{"loss >", "no limit"}, Refusal{"loss > many", "the limit is not a number"},
                    Refusal{"loss > 6ms", "unknown unit"}, Refusal{"wait > 5", "ns, us, ms or s"},
                    Refusal{"wait > 5MB", "ns, us, ms or s"}, Refusal{"memory > 1XB", "KiB, MiB"},
                    Refusal{"loss is infinite", "a counter can be nan"},
                    Refusal{"loss is nan loss > 3", "two conditions"}, Refusal{"loss", "loss > a limit"},
                    Refusal{"rank=1 wait", "a counter alone"}, Refusal{"loss is nan F", "a condition has no event"},
                    Refusal{"F axis=tp", "an action has no axis"},
                    Refusal{"axis=tp stage=1", "a collective has no stage"}, Refusal{"loss > inf", "not a number"},
                    Refusal{"los > 3", "did you mean 'loss'?"},
                    Refusal{"memory/activation > 3", "did you mean 'memory/activations'?"}));

TEST_P(BreakpointRefusalTest, NamesThePart) {
  try {
    parse_breakpoint(GetParam().text);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr(GetParam().part));
  }
}

TEST(Breakpoint, LongTextIsRefusedNotEchoed) {
  try {
    parse_breakpoint(std::string(100'000, 'x'));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_LT(std::string(error.what()).size(), 400U);
  }
}

TEST(Breakpoint, MatchesBoundaries) {
  const Boundary forward{.kind = BoundaryKind::kSpan, .name = "F", .step = 1, .microbatch = 3, .stage = 2};
  const Boundary post{.kind = BoundaryKind::kPost,
                      .name = "all_reduce",
                      .step = 1,
                      .axis = Axis::kDp,
                      .verb = Verb::kAllReduce,
                      .group = {0, 2}};
  Boundary wait = post;
  wait.kind = BoundaryKind::kWait;
  const Boundary begin{.kind = BoundaryKind::kStepBegin, .name = "step", .step = 1};
  const auto hits = [](const char* text, const Boundary& at) { return matches(parse_breakpoint(text), 5, at); };

  EXPECT_TRUE(hits("F", forward));
  EXPECT_TRUE(hits("F mb=3 stage=2 rank=5 step=1", forward));
  EXPECT_FALSE(hits("F mb=2", forward));
  EXPECT_FALSE(hits("F rank=4", forward));
  EXPECT_FALSE(hits("F step=0", forward));
  EXPECT_FALSE(hits("F stage=0", forward));
  EXPECT_FALSE(hits("BW", forward));
  EXPECT_TRUE(hits("mb=3", forward));
  EXPECT_TRUE(hits("stage=2", forward));
  EXPECT_TRUE(hits("rank=5", forward));
  EXPECT_FALSE(hits("step=1", forward)) << "a step alone: where it begins";
  EXPECT_TRUE(hits("step=1", begin));
  EXPECT_FALSE(hits("step=2", begin));
  EXPECT_TRUE(hits("all_reduce", post));
  EXPECT_TRUE(hits("all_reduce axis=dp", post));
  EXPECT_FALSE(hits("all_reduce axis=tp", post));
  EXPECT_TRUE(hits("axis=dp", post));
  EXPECT_FALSE(hits("all_reduce", wait)) << "once a call, before it is posted";
  EXPECT_FALSE(hits("axis=dp", forward));
  EXPECT_FALSE(hits("loss is nan", forward));
}

TEST(Breakpoint, Conditions) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(holds(parse_breakpoint("loss is nan"), "loss", nan));
  EXPECT_FALSE(holds(parse_breakpoint("loss is nan"), "loss", 3));
  EXPECT_FALSE(holds(parse_breakpoint("loss is nan"), "grad_norm", nan));
  EXPECT_TRUE(holds(parse_breakpoint("loss > 6"), "loss", 6.5));
  EXPECT_FALSE(holds(parse_breakpoint("loss > 6"), "loss", 6));
  EXPECT_FALSE(holds(parse_breakpoint("loss > 6"), "loss", nan));
  EXPECT_TRUE(holds(parse_breakpoint("loss < 6"), "loss", 5));
  EXPECT_TRUE(holds(parse_breakpoint("wait > 2us"), "wait", 2001));
  EXPECT_TRUE(holds(parse_breakpoint("activations_held > 2"), "activations held", 3));
  EXPECT_FALSE(holds(parse_breakpoint("activations_held > 2"), "activations", 3));
}

TEST(Boundary, Text) {
  EXPECT_EQ(to_text(Boundary{.kind = BoundaryKind::kStepBegin, .name = "step", .step = 12}), "step 12 begins");
  EXPECT_EQ(to_text(Boundary{.kind = BoundaryKind::kSpan, .name = "BW", .microbatch = 7, .stage = 1}),
            "BW mb 7 stage 1");
  EXPECT_EQ(to_text(Boundary{.kind = BoundaryKind::kWait,
                             .name = "recv",
                             .axis = Axis::kPp,
                             .verb = Verb::kRecv,
                             .group = {0, 4},
                             .peer = 4}),
            "wait for recv from 4 on pp [0 4]");
  EXPECT_EQ(to_text(Boundary{.kind = BoundaryKind::kPost,
                             .name = "all_reduce",
                             .axis = Axis::kTp,
                             .group = {0, 1},
                             .types = *TypeChange::parsed("partial -> replicated over tp")}),
            "all_reduce on tp [0 1]: partial -> replicated over tp");
  EXPECT_EQ(to_text(Boundary{.kind = BoundaryKind::kValue, .name = "loss", .value = 2.5}), "loss = 2.5");
  EXPECT_EQ(to_text(Boundary{.kind = BoundaryKind::kValue, .name = "memory/activations", .value = 3 << 20}),
            "memory/activations = 3.00 MiB");
}

}  // namespace
}  // namespace ranklab
