// What a check draws: the solution's picture shows the right one twice; a wrong answer is refused in words, and its
// picture shows where it went wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "lessons/glyphs.h"
#include "lessons/screen.h"
#include "tests/lessons/all_rows.h"
#include "tests/lessons/graded.h"

namespace ranklab::lesson {
namespace {

// A change of the solution, and a line (or a part of it) that the picture then has and the solution's has not.
struct WrongAnswer {
  const char *from, *to;
  const char* drawn;
};

struct DrawnLesson {
  const char* slug;
  WrongAnswer wrong[2];
};

const DrawnLesson kDrawn[] = {
    {"what_is_a_rank",
     {{"rank % size.tp", "rank / 4", "pp 0, dp 0  0 1              ·"},
      {"rank / (size.tp * size.cp * size.dp)", "rank", "outside the mesh: 6 ranks"}}},
    {"all_reduce",
     {{"chunk(data, rank - s + 1, n), next, chunk(data, rank - s, n)",
       "chunk(data, 0, n).first(0), next, chunk(data, 0, n).first(0)", "0 18765432*"},
      {"+= arrived[i]", "= arrived[i]", "0 11111111*"}}},
    {"replicas_stay_equal",
     {{"bucket.ticket = comm.start_all_reduce(bucket.data);\n}\n\nextern \"C\" void finish(Comm& comm, "
       "std::span<Bucket> buckets) {\n  for (Bucket& bucket : buckets) {\n    comm.wait(bucket.ticket);",
       "comm.all_reduce(bucket.data);\n}\n\nextern \"C\" void finish(Comm& comm, std::span<Bucket> buckets) {\n  for "
       "(Bucket& bucket : buckets) {",
       "B····B"},
      {"comm.wait(bucket.ticket);", "comm.wait(bucket.ticket); comm.all_reduce(bucket.data);", "▒▒▒|▒"}}},
    {"split_matmul",
     {{"    copy(all, mine);\n    tp.all_reduce(mine);\n  } else {\n    tp.reduce_scatter(all, mine);\n  }\n}\n\n// "
       "Backward, into",
       "    copy(all, mine);\n  } else {\n    tp.reduce_scatter(all, mine);\n  }\n}\n\n// Backward, into",
       "A act B  ──── nothing ─────>  y"},
      {"    copy(mine, all);\n  } else {\n    tp.all_gather(mine, all);\n  }\n}\n\n// Forward, out",
       "    copy(mine, all);\n  } else {\n    copy(mine, all.first(mine.size()));\n  }\n}\n\n// Forward, out",
       "x norm  ──── nothing ─────>  A act B  ─ reduce-scatter ─>  y"}}},
    {"why_pipelines_idle",
     {{"ranks - 1 - rank,", "ranks - 2 - rank,", "yours, p = 5, m = 7: 51"},
      {"order.backward(done);", "if (rank != 3) order.backward(done);", "yours, p = 8, m = 8: the lists"}}},
    {"can_the_bubble_shrink",
     {{"done >= rank", "done >= 0", "yours, p = 8, m = 8: 38"},
      {"while (weighed < microbatches) order.weight_grad(weighed++);", "", "yours, p = 8, m = 8: the lists"}}},
    {"who_talks_to_whom_in_moe",
     {{"all[e] > mean ? -speed", "all[e] > mean ? speed", "max/mean, yours  ▇▇▇▇▇▇"},
      {"ep.all_to_all(outbox, times(trip.send_rows, hidden), trip.inbox, times(trip.recv_rows, hidden));", "",
       "r0 ··░░░░░░░░░░░░░░ "}}},
    {"where_does_memory_go",
     {{"3 * kFp32", "kFp32 + 2 * kBf16", "██  6956032"}, {"2 * model.ffn", "model.ffn", "██  1378560"}}},
    {"can_compute_buy_memory",
     {{"peak_bytes(layers, recompute) > limit_bytes || ", "", "    yours ████ ████ ████ ████ ████ ████ ████ ████"},
      {"extra_work(layers, recompute) >= least", "false", "yours ░ ░░░░ ░ ░░░░░░░░ ░ ░░░░ ░░ ░ "}}},
    {"who_owns_what_in_zero",
     {{"static_cast<size_t>(rank) * part", "size_t(size - 1 - rank) * part",
       "yours      77777777666666665555555544444444333333332222222211111111"},
      {"  dp.reduce_scatter(padded, mine.gradients);",
       "  dp.reduce_scatter(padded, mine.gradients);\n  for (double& g : mine.gradients) g /= 8;", "gradients  ####"}}},
    {"what_do_8_bits_lose",
     {{"std::nearbyint(x / apart(x))", "std::floor(x / apart(x))", "aaaaaaaabbbbbbbb"},
      {"std::max(std::ldexp(1.0, exponent - 1 - 3), kSmallest)", "std::ldexp(1.0, exponent - 1 - 3)", "a?"}}},
    {"can_4_bits_train",
     {{"draw < chance", "0.5 < chance", "yours  ▁▁▁█▁▁▁█"}, {"exponent - 1 - 2", "exponent - 2", "scale 1"}}},
    {"split_a_long_sequence",
     {{"static_cast<size_t>(2 * ranks - 1 - rank) * chunk", "front + chunk + 0 * size_t(ranks)", "yours  000***"},
      {"static_cast<size_t>(rank) * chunk;\n  const size_t back = static_cast<size_t>(2 * ranks - 1 - rank) * chunk",
       "static_cast<size_t>(2 * rank) * chunk;\n  const size_t back = front + chunk + 0 * size_t(ranks)",
       "yours  000000111111"}}},
    {"choose_a_layout",
     {{"layout.zero_stage = 3", "layout.zero_stage = 1", "ZeRO-1, "},
      {"divides && states", "(divides || states > 0) && states", "does not divide --global-batch-size"}}},
    {"find_the_wrong_reduction",
     {{"tensors[i].epsilons > tensors[i].allowed", "tensors[i].epsilons > 1e3 * tensors[i].allowed + 1e30",
       "you: nothing\n    missing sum, right tp"},
      {"only_dp ? MissingSum::kTp : only_tp ? MissingSum::kDp", "only_dp ? MissingSum::kDp : only_tp ? MissingSum::kTp",
       "missing sum, right tp, yours dp"}}},
    {"who_is_missing",
     {{"here = peer;", "here += 0 * peer;", "rank 0: it waits itself"},
      {"int here = 0;", "int here = 0;\n  if (!groups.empty()) return -1;", "there is no such rank"}}},
    {"who_is_slow",
     {{"if (rank.stage == stage) times", "if (rank.stage >= 0 || stage > 5) times", "right nobody, yours rank 4"},
      {"1.3 *", "1.7 *", "right rank 6, yours nobody"}}},
    {"which_copies_drift",
     {{"if (a.pp != b.pp) return false;", "", "right never, yours step 0"},
      {"return !split || a.tp == b.tp;", "return a.tp == b.tp;", "right step 1, yours never"}}},
    {"how_rarely_may_replicas_talk",
     {{"gradient[i] /= comm.size();", "", "yours   ████"}, {"own[i] = outer[i];", "", "·o·"}}},
};

class Pictures : public ::testing::TestWithParam<DrawnLesson> {};

TEST_P(Pictures, ShowWhatIsRightAndWhatIsNot) {
  const DrawnLesson& lesson = GetParam();
  const LessonRow& row = find_lesson(lesson.slug);
  const std::string right = graded_file(row, "solution.cpp").picture;
  EXPECT_NE(right, "");
  EXPECT_EQ(right.find('\033'), std::string::npos);
  std::istringstream lines(right);
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_LE(columns_of(line), 80) << line;
  EXPECT_LE(count, 30);
  for (const WrongAnswer& wrong : lesson.wrong) {
    const Grade& got = graded(row, changed_solution(lesson.slug, wrong.from, wrong.to));
    ASSERT_TRUE(got.compiled) << got.compiler_messages;
    EXPECT_FALSE(got.passed()) << wrong.from;
    EXPECT_TRUE(!got.rows.empty() || !got.problem.empty()) << wrong.from;
    EXPECT_NE(got.picture.find(wrong.drawn), std::string::npos) << "no " << wrong.drawn << " in\n" << got.picture;
    EXPECT_EQ(right.find(wrong.drawn), std::string::npos) << "the solution's has it, too: " << wrong.drawn;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Pictures, ::testing::ValuesIn(kDrawn),
                         [](const auto& test) { return std::string(test.param.slug); });

TEST(PictureList, HasEveryLesson) {
  for (const LessonRow* row : all_rows()) {
    const bool drawn = std::any_of(std::begin(kDrawn), std::end(kDrawn),
                                   [&](const DrawnLesson& lesson) { return row->slug == lesson.slug; });
    EXPECT_TRUE(drawn) << row->slug;
  }
}

TEST(Glyphs, ADarknessForEachQuarter) {
  EXPECT_EQ(heat(0), "·");
  EXPECT_EQ(heat(1e-9), "░");
  EXPECT_EQ(heat(0.25), "░");
  EXPECT_EQ(heat(0.26), "▒");
  EXPECT_EQ(heat(1), "█");
  EXPECT_EQ(heat(-1), "?");
  EXPECT_EQ(height(0), "▁");
  EXPECT_EQ(height(1), "█");
  EXPECT_EQ(heat_matrix("t", {{0, 4}, {2, 1}}, 4), (Cells{"t", "   0 1 ", "r0 ··██", "r1 ▒▒░░"}));
}

TEST(Glyphs, OwnersOfElements) { EXPECT_EQ(owners({{0, 1}, {1, 3, 9}}, 4), "0*·1"); }

}  // namespace
}  // namespace ranklab::lesson
