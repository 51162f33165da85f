// An order of work that cannot be run is explained in the words of order_api.h; one that can is timed like its
// schedule.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "core/base/error.h"
#include "core/base/text.h"
#include "lessons/written_order.h"
#include "tests/lessons/exercise_file.h"

namespace ranklab::lesson {
namespace {

using testing::HasSubstr;

std::string order_with(const std::string& body) {
  return "#include \"exercise.h\"\nusing namespace ranklab::lesson;\n"
         "extern \"C\" void write_order(Order& order, [[maybe_unused]] int rank, [[maybe_unused]] int ranks, "
         "[[maybe_unused]] int microbatches) {\n" +
         body + "\n}\n";
}

struct BadOrder {
  const char* name;
  const char* lesson;
  const char* body;
  std::vector<std::string> told;
};

const BadOrder kBadOrders[] = {
    {"nothing",
     "4",
     "",
     {"p = 8 and m = 8: this order cannot be run", "rank 0 never runs forward 0", "... and 187 more never run"}},
    {"no_backward",
     "4",
     "for (int i = 0; i < microbatches; ++i) { order.forward(i); if (rank != 3 || i != 5) order.backward(i); }",
     {"rank 3 never runs backward 5\nwanted"}},
    {"no_weight_gradient",
     "5",
     "for (int i = 0; i < microbatches; ++i) { order.forward(i); order.input_grad(i); if (rank != 2 || i != 7) "
     "order.weight_grad(i); }",
     {"rank 2 never runs weight_grad 7\nwanted"}},
    {"twice",
     "4",
     "for (int i = 0; i < microbatches; ++i) { order.forward(i); order.backward(i); }\nif (rank == 1) "
     "order.forward(4);",
     {"rank 1 does forward 4 twice"}},
    {"backward_first",
     "4",
     "for (int i = 0; i < microbatches; ++i) { order.backward(i); order.forward(i); }",
     {"rank 0 runs backward 0 (position 0) before forward 0 (position 1), whose result it needs"}},
    {"weight_gradient_first",
     "5",
     "for (int i = 0; i < microbatches; ++i) { order.forward(i); order.weight_grad(i); order.input_grad(i); }",
     {"rank 0 runs weight_grad 0 (position 1) before input_grad 0 (position 2), whose result it needs"}},
    {"no_such_microbatch",
     "4",
     "for (int i = 0; i < microbatches; ++i) { order.forward(i); order.backward(i - 1); }",
     {"rank 0 runs backward -1: microbatches are 0 to 7"}},
    // Only with fewer microbatches than ranks.
    {"warm_up_past_the_end",
     "4",
     "int next = 0;\nwhile (next < ranks - 1 - rank) order.forward(next++);\n"
     "for (int done = 0; done < microbatches; ++done) {\n"
     "  if (next < microbatches) order.forward(next++);\n  order.backward(done);\n}",
     {"p = 8 and m = 3: this order cannot be run", "rank 0 runs forward 3: microbatches are 0 to 2"}},
    {"deadlock",
     "4",
     "if (rank == 6) {\n  for (int i = 0; i < microbatches; ++i) order.forward(i);\n"
     "  for (int i = 0; i < microbatches; ++i) order.backward(i);\n  return;\n}\n"
     "for (int i = 0; i < microbatches; ++i) { order.forward(i); order.backward(i); }",
     {"p = 8 and m = 8: deadlock: each rank waits for the next one",
      "\nrank 5 waits at backward 0 for backward 0, which rank 6 runs after forward 1\n",
      "\nrank 6 waits at forward 1 for forward 1, which rank 5 runs after backward 0\n"}},
    {"endless", "4", "for (;;) order.forward(0);", {"the list of rank 0 does not end", "for 8 microbatches"}},
};

class BadOrders : public ::testing::TestWithParam<BadOrder> {};

TEST_P(BadOrders, AreToldInTheLessonsWords) {
  const Grade got = grade_text(GetParam().lesson, order_with(GetParam().body));
  EXPECT_TRUE(got.compiled) << got.compiler_messages;
  EXPECT_FALSE(got.passed());
  EXPECT_TRUE(got.rows.empty());
  const std::string told = got.problem + "\n" + join(got.details, "\n");
  for (const std::string& text : GetParam().told) EXPECT_THAT(told, HasSubstr(text));
  EXPECT_FALSE(std::regex_search(told, std::regex("[0-9](F|B|W)"))) << told << "\nis not in the lesson's words";
}

INSTANTIATE_TEST_SUITE_P(All, BadOrders, ::testing::ValuesIn(kBadOrders),
                         [](const auto& test) { return std::string(test.param.name); });

// What the hints and the README of lesson 4 say of a warm-up that is one forward short: it runs, and costs time only.
TEST(Order, ATooShortWarmUpCostsTime) {
  const auto short_warm_up = [](Order& order, int rank, int ranks, int microbatches) {
    int next = 0;
    while (next < std::min(ranks - 2 - rank, microbatches)) order.forward(next++);
    for (int done = 0; done < microbatches; ++done) {
      if (next < microbatches) order.forward(next++);
      order.backward(done);
    }
  };
  const TimedSchedule got = run_order(short_warm_up, 8, 8);
  EXPECT_GT(got.timeline.makespan, timed("1f1b", 8, 8).timeline.makespan);
  EXPECT_EQ(got.held_text(), "7 6 5 4 3 2 1 1");
}

// What hint 1 of lesson 5 promises.
TEST(Order, SplittingAloneTakes38) {
  const auto split = [](Order& order, int rank, int ranks, int microbatches) {
    int next = 0;
    while (next < std::min(ranks - 1 - rank, microbatches)) order.forward(next++);
    for (int done = 0; done < microbatches; ++done) {
      if (next < microbatches) order.forward(next++);
      order.input_grad(done);
      order.weight_grad(done);
    }
  };
  const TimedSchedule got = run_order(split, 8, 8);
  EXPECT_EQ(got.timeline.makespan, 38);
  EXPECT_EQ(got.held_text(), timed("1f1b", 8, 8).held_text());
}

// "Give one rank in the middle GPipe's order": the experiment that lesson 4 suggests does end in a deadlock.
TEST(Order, OneRankOfGpipeAmong1f1bIsADeadlock) {
  const auto mixed = [](Order& order, int rank, int ranks, int microbatches) {
    const int warm_up = rank == 4 ? microbatches : std::min(ranks - 1 - rank, microbatches);
    int next = 0;
    while (next < warm_up) order.forward(next++);
    for (int done = 0; done < microbatches; ++done) {
      if (next < microbatches) order.forward(next++);
      order.backward(done);
    }
  };
  try {
    run_order(mixed, 8, 8);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kCheckFailed);
    EXPECT_THAT(error.what(), HasSubstr("deadlock"));
  }
}

}  // namespace
}  // namespace ranklab::lesson
