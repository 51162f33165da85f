// Lesson 12: ways to write its ring that are slower, that hang, or that touch a message on its way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/text.h"
#include "tests/lessons/exercise_file.h"

namespace ranklab::lesson {
namespace {

using testing::HasSubstr;

constexpr const char* kStart = "    if (has_next_hop) ticket = cp.start_send_recv(here, next, coming, previous);\n";
constexpr const char* kAttend = "    merge_partial(total, mine.attend(here, (rank + n - s) % n));\n";
constexpr const char* kWait = "    if (!has_next_hop) break;\n    cp.wait(ticket);\n";

std::vector<std::string> rows_failed_by(const std::string& from, const std::string& to) {
  const Grade got = grade_text("12", changed_solution("12", from, to));
  EXPECT_TRUE(got.compiled) << got.compiler_messages;
  EXPECT_EQ(got.problem, "");
  std::vector<std::string> failed;
  for (const CheckRow& row : got.rows) {
    if (!row.passed) failed.push_back(row.what);
  }
  return failed;
}

std::string told(const std::string& from, const std::string& to) {
  const Grade got = grade_text("12", changed_solution("12", from, to), std::chrono::milliseconds(10'000));
  EXPECT_TRUE(got.compiled) << got.compiler_messages;
  EXPECT_FALSE(got.passed());
  return got.problem + "\n" + join(got.details, "\n");
}

// What hint 2 of the lesson promises.
TEST(RingAttention, AHopAfterItsBlockIsSeen) {
  EXPECT_EQ(rows_failed_by(std::string(kStart) + kAttend + kWait,
                           std::string(kAttend) + "    if (!has_next_hop) break;\n    ticket = 0;\n"
                                                  "    cp.send_recv(here, next, coming, previous);\n"),
            (std::vector<std::string>{"hops that start before their block, all ranks", "ring, your split: time"}));
}

// Right, but nothing is hidden.
TEST(RingAttention, WaitingBeforeTheBlockIsSeen) {
  EXPECT_EQ(rows_failed_by(std::string(kStart) + kAttend + kWait, std::string(kStart) +
                                                                      "    if (has_next_hop) cp.wait(ticket);\n" +
                                                                      kAttend + "    if (!has_next_hop) break;\n"),
            std::vector<std::string>{"ring, your split: time"});
}

TEST(RingAttention, WhatHasNotArrivedIsNotThere) {
  EXPECT_THAT(rows_failed_by("    cp.wait(ticket);\n    std::swap(here, coming);\n",
                             "    std::swap(here, coming);\n    if (s == 5) cp.wait(ticket);\n"),
              testing::Contains("ring, your split: output"));
}

TEST(RingAttention, AMessageChangedOnItsWayIsTold) {
  EXPECT_THAT(told(kAttend, std::string(kAttend) + "    if (rank == 3) here[0] += 1;\n"),
              HasSubstr("a message was changed while it was sent"));
}

TEST(RingAttention, OneBufferForBothWaysIsTold) {
  EXPECT_THAT(
      told("cp.start_send_recv(here, next, coming, previous)", "cp.start_send_recv(here, next, here, previous)"),
      HasSubstr("a rank receives into what it sends"));
}

TEST(RingAttention, AnOwnerThatDoesNotExistIsTold) {
  EXPECT_THAT(told("(rank + n - s) % n", "rank - s"), HasSubstr("there is no such owner"));
}

TEST(RingAttention, ADeadlockIsTold) {
  EXPECT_THAT(
      told(kStart, "    if (has_next_hop) cp.send(here, next);\n    if (has_next_hop) cp.recv(coming, previous);\n"),
      HasSubstr("deadlock"));
}

TEST(RingAttention, AnEndlessLoopIsEnded) {
  EXPECT_THAT(told(kAttend, "    for (volatile bool on = rank == 4; on;) {}\n" + std::string(kAttend)),
              HasSubstr("rank 4"));
}

}  // namespace
}  // namespace ranklab::lesson
