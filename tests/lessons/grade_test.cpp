// Each exercise fails as it is given and passes with its solution; and each way to get a solution nearly right fails
// exactly the rows that are about it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lessons/markdown.h"
#include "tests/lessons/all_rows.h"
#include "tests/lessons/graded.h"

namespace ranklab::lesson {
namespace {

std::vector<std::string> failed_rows(const Grade& grade) {
  std::vector<std::string> failed;
  for (const CheckRow& row : grade.rows) {
    if (!row.passed) failed.push_back(row.what);
  }
  return failed;
}

class Exercises : public ::testing::TestWithParam<const LessonRow*> {};

TEST_P(Exercises, FailsAsGiven) {
  const Grade& got = graded_file(*GetParam(), "exercise.cpp");
  EXPECT_TRUE(got.compiled) << got.compiler_messages;
  EXPECT_EQ(got.compiler_messages, "") << "no warnings in what a learner starts from";
  EXPECT_EQ(got.problem, "") << "it differs, it does not break";
  EXPECT_FALSE(failed_rows(got).empty());
  EXPECT_FALSE(got.passed());
}

TEST_P(Exercises, PassesWithTheSolution) {
  const Grade& got = graded_file(*GetParam(), "solution.cpp");
  EXPECT_EQ(got.compiler_messages, "");
  EXPECT_EQ(got.problem, "");
  EXPECT_EQ(failed_rows(got), std::vector<std::string>{});
  EXPECT_TRUE(got.passed());
  for (const CheckRow& row : got.rows) {
    EXPECT_FALSE(row.expected.empty() || row.measured.empty() || row.tolerance.empty()) << row.what;
  }
}

// One hole, which is marked, or one bug, which is not.
TEST_P(Exercises, HaveOneHole) {
  const std::string exercise = read_text(GetParam()->folder() / "exercise.cpp");
  size_t holes = 0;
  for (size_t at = 0; (at = exercise.find("---- your turn", at)) != std::string::npos; ++at) ++holes;
  EXPECT_EQ(holes, GetParam()->slug == "split_matmul" ? 0u : 1u);
  EXPECT_THAT(exercise, testing::HasSubstr("ranklab lesson check " + std::to_string(GetParam()->number)));
}

INSTANTIATE_TEST_SUITE_P(All, Exercises, ::testing::ValuesIn(all_rows()),
                         [](const auto& test) { return test.param->slug; });

struct NearMiss {
  const char* name;
  const char* lesson;
  const char* from;
  const char* to;
  std::vector<std::string> failed;
};

const NearMiss kNearMisses[] = {
    {"states_not_sharded",
     "13",
     "layout.zero_stage = 3",
     "layout.zero_stage = 1",
     {"512 GPUs, 1024 sequences: memory", "512 GPUs, 128 sequences: memory", "512 GPUs, 128 sequences: step",
      "64 GPUs, 256 sequences: memory"}},
    {"more_replicas_than_sequences",
     "13",
     "divides && states",
     "(divides || states > 0) && states",
     {"512 GPUs, 128 sequences: sizes", "512 GPUs, 128 sequences: memory", "512 GPUs, 128 sequences: step"}},
    {"too_much_split",
     "13",
     "layout.zero_stage = 3;",
     "layout.zero_stage = 3;\n  layout.tp = 8, layout.zero_stage = 1, layout.pp = 8;\n  return;",
     {"512 GPUs, 1024 sequences: step", "512 GPUs, 128 sequences: step", "64 GPUs, 256 sequences: step"}},
    {"moments_in_bf16",
     "7",
     "3 * kFp32",
     "kFp32 + 2 * kBf16",
     {"gpt_tiny: bytes of optimizer", "model 1: bytes of optimizer", "model 2: bytes of optimizer",
      "model 3: bytes of optimizer"}},
    {"attention_keeps_no_output",
     "7",
     "(3 + 1) * model.hidden",
     "3 * model.hidden",
     {"gpt_tiny: a layer keeps", "model 1: a layer keeps", "model 2: a layer keeps", "model 3: a layer keeps"}},
    {"no_cp", "0", "% size.cp", "% 1", {"6 further meshes"}},
    {"tp_and_pp_swapped",
     "0",
     "place.tp = rank % size.tp",
     "place.tp = rank / 4",
     {"rank 1", "rank 3", "rank 4", "rank 6", "dp groups", "pp groups", "6 further meshes"}},
    {"reduce_scatter_only",
     "1",
     "chunk(data, rank - s + 1, n), next, chunk(data, rank - s, n)",
     "chunk(data, 0, n).first(0), next, chunk(data, 0, n).first(0)",
     {"bytes each rank sends", "sum of 1024 numbers", "  in the ring's order", "sum of 1003 numbers",
      "  in the ring's order", "time of 1 MiB"}},
    {"sum_not_mean",
     "2",
     "gradient /= comm.size()",
     "gradient *= 1.0",
     {"gradients of step 0, 8 ranks", "loss of step 4"}},
    {"one_rank_divides_twice",
     "2",
     "gradient /= comm.size()",
     "gradient /= comm.size() * (comm.rank() == 3 ? 2 : 1)",
     {"models after 5 steps", "gradients of step 0, 8 ranks", "loss of step 4"}},
    {"norm_gradient_not_summed",
     "3",
     "tp.all_reduce(gradient)",
     "tp.all_reduce(gradient.first(0))",
     {"sp: gradient of the norm's weights"}},
    {"forward_term_missing",
     "3",
     "    copy(all, mine);\n    tp.all_reduce(mine);\n  } else {\n    tp.reduce_scatter(all, mine);\n  }\n}\n\n// "
     "Backward, into",
     "    copy(all, mine);\n  } else {\n    tp.reduce_scatter(all, mine);\n  }\n}\n\n// Backward, into",
     {"tp: output", "tp: gathers + scatters + all-reduces", "sp sends as much as tp"}},
    {"warm_up_too_short",
     "4",
     "ranks - 1 - rank,",
     "ranks - 2 - rank,",
     {"p = 8, m = 8: time", "p = 8, m = 8: held", "p = 8, m = 32: time", "p = 8, m = 32: held", "p = 5, m = 7: time",
      "p = 5, m = 7: held", "p = 8, m = 3: time", "p = 8, m = 3: held"}},
    {"warm_up_too_long",
     "4",
     "ranks - 1 - rank,",
     "ranks - rank,",
     {"p = 8, m = 8: held", "p = 8, m = 32: held", "p = 5, m = 7: held", "p = 8, m = 3: held", "p = 1, m = 4: held"}},
    {"split_but_not_moved",
     "5",
     "done >= rank",
     "done >= 0",
     {"p = 8, m = 8: time", "p = 8, m = 32: time", "p = 4, m = 9: time", "p = 8, m = 3: time"}},
    {"one_too_late",
     "5",
     "done >= rank",
     "done > rank",
     {"p = 8, m = 8: time", "p = 8, m = 32: held", "p = 4, m = 9: held", "p = 8, m = 3: time", "p = 1, m = 4: held"}},
    {"all_weight_gradients_last",
     "5",
     "done >= rank",
     "done < 0",
     {"p = 8, m = 8: time", "p = 8, m = 32: time", "p = 8, m = 32: held", "p = 4, m = 9: time", "p = 4, m = 9: held",
      "p = 8, m = 3: time", "p = 1, m = 4: held"}},
    {"copies_of_the_next_token",
     "6",
     "row(x, copy / kChoices, hidden)",
     "row(x, (copy / kChoices + 1) % routing.tokens(), hidden)",
     {"even: rows in a wrong inbox", "even: output", "ragged: rows in a wrong inbox", "ragged: output"}},
    {"weights_forgotten", "6", "routing.weight[copy] * from[i]", "0.5 * from[i]", {"even: output", "ragged: output"}},
    {"second_choice_left_at_home", "6", "to[i] += routing", "to[i] = routing", {"even: output", "ragged: output"}},
    {"bias_of_this_rank_alone", "6", "ep.all_reduce(all);", "", {"one update, in speeds", "biases of the 8 ranks"}},
    {"first_expert_forgotten",
     "6",
     "for (size_t e = 0; e < bias",
     "for (size_t e = 1; e < bias",
     {"one update, in speeds"}},
    {"mean_counts_as_more", "6", "all[e] > mean", "all[e] >= mean", {"one update, in speeds"}},
    {"bias_the_wrong_way",
     "6",
     "all[e] > mean ? -speed",
     "all[e] > mean ? speed",
     {"one update, in speeds", "max/mean of the last 10 of 100 steps"}},
    {"no_case_of_no_sum",
     "14",
     "only_tp = only_tp && same(rank.there, sum_over(ranks, rank, true));",
     "",
     {"half of all sums: missing sum"}},
    {"first_group_is_none", "15", "rank.waits_in < 0", "rank.waits_in <= 0", {"rank 1 left before call 1: missing"}},
    {"median_unsorted", "16", "std::sort(times.begin(), times.end());", "", {"usual of 5, 1, 4 and 2"}},
    {"split_not_looked_at",
     "17",
     "if (must_equal(a, b, true) && a.split != b.split) return static_cast<int>(step);",
     "",
     {"what tp splits of one rank, step 1"}},
    {"outer_momentum_forgotten",
     "18",
     "rule.momentum * momentum[i] + gradient[i]",
     "gradient[i]",
     {"fourth update: outer parameters", "fourth update: momentum", "plain momentum: second update"}},
    {"movement_in_two_messages",
     "18",
     "comm.all_reduce(gradient);",
     "comm.all_reduce(std::span(gradient).first(999));\n  comm.all_reduce(std::span(gradient).subspan(999));",
     {"all-reduces an update"}},
    {"cleared_not_freed", "9", "std::vector<double>().swap(whole);", "whole.clear();", {"numbers left after release"}},
    {"gradient_averaged_again",
     "9",
     "dp.reduce_scatter(padded, mine.gradients);",
     "dp.reduce_scatter(padded, mine.gradients);\n  for (double& g : mine.gradients) g /= dp.size();",
     {"gradients of step 0, 8 ranks", "parameters after 10 AdamW steps", "loss of the last step"}},
    {"all_reduce_and_slice",
     "9",
     "dp.reduce_scatter(padded, mine.gradients);",
     "dp.all_reduce(padded);\n  std::copy_n(padded.begin() + dp.rank() * std::ptrdiff_t(mine.gradients.size()), "
     "mine.gradients.size(), mine.gradients.begin());",
     {"numbers sent a step and rank"}},
    {"ties_away_from_zero",
     "10",
     "std::nearbyint(x / apart(x))",
     "std::round(x / apart(x))",
     {"to_e4m3(17)", "to_e4m3(0.000976562)", "of 1016 numbers and their middles, wrong"}},
    {"minus_zero_not_counted",
     "10",
     "if (after[i] == 0) ++lost;",
     "if (after[i] == 0 && !std::signbit(after[i])) ++lost;",
     {"underflow: 0 is not lost, -0 is"}},
    {"only_the_last_amax",
     "10",
     "*std::max_element(amax.begin(), amax.end())",
     "amax[0]",
     {"factor after 2, 7, 3.5", "replay: numbers far beyond 448, the spike's step apart"}},
    {"rounded_to_nearest",
     "11",
     "draw < chance",
     "0.5 < chance",
     {"stochastic(0.1): mean of 20000 draws", "stochastic(1.7): mean of 20000 draws",
      "stochastic(2.2): mean of 20000 draws", "stochastic(-5): mean of 20000 draws",
      "stochastic(-0.3): mean of 20000 draws"}},
    {"scale_rounded_up",
     "11",
     "exponent - 1 - 2",
     "exponent - 2",
     {"mx_scale of a block with amax 6", "mx_scale of a block with amax 7.9", "mx_scale of a block with amax 8",
      "mx_scale of a block with amax 1", "mx_scale of a block with amax 0.3", "mx_scale of a block with amax 0.0001",
      "of 32768 normal numbers in blocks of 32, zeros"}},
    {"still_contiguous",
     "12",
     "static_cast<size_t>(rank) * chunk;\n  const size_t back = static_cast<size_t>(2 * ranks - 1 - rank) * chunk",
     "static_cast<size_t>(2 * rank) * chunk;\n  const size_t back = front + chunk + 0 * size_t(ranks)",
     {"8 ranks: most work over the mean", "3 ranks: most work over the mean", "ring, your split: time"}},
    {"positions_twice",
     "12",
     "static_cast<size_t>(2 * ranks - 1 - rank) * chunk",
     "front + chunk + 0 * size_t(ranks)",
     {"8 ranks: positions that one rank has", "8 ranks: most work over the mean",
      "3 ranks: positions that one rank has", "3 ranks: most work over the mean", "ring, your split"}},
    {"not_rescaled",
     "12",
     "std::exp(a - both) * to[i]",
     "to[i]",
     {"merge: 3 blocks", "merge: scores around 800", "merge: scores around -800",
      "merge: queries that attend to nothing", "ring, contiguous: output", "ring, your split: output",
      "ring, zigzag on 3 ranks: output"}},
    {"maximum_not_taken_out",
     "12",
     "std::max(a, b)",
     "std::max(a, b) == kNothing ? kNothing : 0",
     {"warm-up: of 5 logarithms, right", "merge: scores around 800", "merge: scores around -800"}},
    {"nothing_not_skipped", "12", "if (both == kNothing) continue;", "", {"merge: queries that attend to nothing"}},
    {"keys_of_another_rank",
     "12",
     "(rank + n - s) % n",
     "(rank + s) % n",
     {"ring, contiguous: output", "ring, your split: output", "ring, zigzag on 3 ranks: output"}},
    {"keys_brought_home",
     "12",
     "const bool has_next_hop = s + 1 < n;",
     "const bool has_next_hop = s < n;",
     {"hops of a rank", "bytes that a rank sends"}},
};

class NearMisses : public ::testing::TestWithParam<NearMiss> {};

TEST_P(NearMisses, FailTheirRows) {
  const NearMiss& miss = GetParam();
  const Grade& got = graded(find_lesson(miss.lesson), changed_solution(miss.lesson, miss.from, miss.to));
  EXPECT_TRUE(got.compiled) << got.compiler_messages;
  EXPECT_EQ(got.problem, "");
  EXPECT_FALSE(got.passed());
  EXPECT_EQ(failed_rows(got), miss.failed);
}

INSTANTIATE_TEST_SUITE_P(All, NearMisses, ::testing::ValuesIn(kNearMisses),
                         [](const auto& test) { return std::string(test.param.name); });

// Correct sums in the order of a different ring: only the bits show it.
TEST(Ring, AnotherOrderOfAdditionsIsSeen) {
  const std::string text = R"(#include "exercise.h"
#include <vector>
using namespace ranklab::lesson;
extern "C" void ring_all_reduce(Comm& comm, std::span<double> data) {
  const int n = comm.size(), r = comm.rank(), next = (r + n - 1) % n, previous = (r + 1) % n;
  std::vector<double> buffer(data.size());
  for (int s = 0; s < 2 * (n - 1); ++s) {
    std::span<double> into = chunk(data, r + s + 1, n), got(buffer.data(), into.size());
    comm.send_recv(chunk(data, r + s, n), next, got, previous);
    for (size_t i = 0; i < into.size(); ++i) into[i] = s < n - 1 ? into[i] + got[i] : got[i];
  }
}
)";
  const std::vector<std::string> bits(2, "  in the ring's order");
  EXPECT_EQ(failed_rows(grade_text("1", text)), bits) << "steps, bytes, time and sums are right";
}

// Correct, but a message one way after the other takes twice the time.
TEST(Ring, OneDirectionAtATimeIsSeen) {
  const std::string from = "comm.send_recv(chunk(data, rank - s, n), next, arrived, previous);";
  const std::string to =
      "if (rank % 2 == 0) {\n comm.send(chunk(data, rank - s, n), next);\n comm.recv(arrived, previous);\n} else {\n"
      " comm.recv(arrived, previous);\n comm.send(chunk(data, rank - s, n), next);\n}";
  EXPECT_EQ(failed_rows(grade_text("1", changed_solution("1", from, to))), std::vector<std::string>{"time of 1 MiB"});
}

// What hint 1 of the lesson promises.
TEST(Replicas, AveragingAfterBackwardFailsOnlyTheLastRow) {
  const std::string text = R"(#include "exercise.h"
using namespace ranklab::lesson;
extern "C" void gradient_ready(Comm&, Bucket&) {}
extern "C" void finish(Comm& comm, std::span<Bucket> buckets) {
  for (Bucket& bucket : buckets) {
    comm.all_reduce(bucket.data);
    for (double& gradient : bucket.data) gradient /= comm.size();
  }
}
)";
  EXPECT_EQ(failed_rows(grade_text("2", text)), std::vector<std::string>{"exposed communication"});
}

TEST(Replicas, ABucketPerLayerIsSeen) {
  const std::string text = R"(#include "exercise.h"
using namespace ranklab::lesson;
extern "C" void gradient_ready(Comm& comm, Bucket& bucket) {
  const size_t half = bucket.data.size() / 2;
  bucket.ticket = comm.start_all_reduce(bucket.data.subspan(half * static_cast<size_t>(2 - bucket.missing--), half));
  if (bucket.missing == 1) comm.wait(bucket.ticket);
}
extern "C" void finish(Comm& comm, std::span<Bucket> buckets) {
  for (Bucket& bucket : buckets) {
    comm.wait(bucket.ticket);
    for (double& gradient : bucket.data) gradient /= comm.size();
  }
}
)";
  EXPECT_THAT(failed_rows(grade_text("2", text)), testing::Contains("all-reduces a step"));
}

TEST(ComputeAndMemory, TheMostBytesSavedFirstIsNotTheBest) {
  const std::string text = R"(#include "exercise.h"
using namespace ranklab::lesson;
extern "C" void place(std::span<const Layer> layers, double limit, std::span<bool> recompute) {
  std::fill(recompute.begin(), recompute.end(), false);
  while (peak_bytes(layers, recompute) > limit) {
    size_t best = layers.size();
    for (size_t i = 0; i < layers.size(); ++i) {
      if (!recompute[i] && (best == layers.size() || layers[i].kept_bytes > layers[best].kept_bytes)) best = i;
    }
    if (best == layers.size()) return;
    recompute[best] = true;
  }
}
)";
  const std::vector<std::string> failed = failed_rows(grade_text("8", text));
  EXPECT_THAT(failed, testing::Contains(testing::HasSubstr("computed twice")));
  EXPECT_THAT(failed, testing::Not(testing::Contains(testing::HasSubstr("gradients"))));
}

}  // namespace
}  // namespace ranklab::lesson
