// The traces that a check saves for the visualizer: of the learner's code and of the solution, both readable.
#include <gtest/gtest.h>

#include <filesystem>

#include "core/trace/chrome_reader.h"
#include "tests/lessons/graded.h"

namespace ranklab::lesson {
namespace {

namespace fs = std::filesystem;

struct Recorded {
  const char* lesson;
  int ranks;
  std::vector<std::string> files;
};

const Recorded kRecorded[] = {{"all_reduce", 8, {"yours.json.gz", "right.json.gz"}},
                              {"replicas_stay_equal", 8, {"right.json.gz", "yours.json.gz"}},
                              {"split_matmul", 8, {"yours.json.gz"}},
                              {"why_pipelines_idle", 8, {"yours.json.gz", "right.json.gz"}},
                              {"can_the_bubble_shrink", 8, {"yours.json.gz", "right.json.gz"}},
                              {"who_talks_to_whom_in_moe", 8, {"yours.json.gz", "right.json.gz"}},
                              {"who_owns_what_in_zero", 8, {"yours.json.gz", "right.json.gz"}},
                              {"split_a_long_sequence", 8, {"right.json.gz", "yours.json.gz"}},
                              {"how_rarely_may_replicas_talk", 8, {"right.json.gz", "yours.json.gz"}}};

class Recordings : public ::testing::TestWithParam<Recorded> {};

TEST_P(Recordings, SolutionDoesWhatIsRight) {
  const Recorded& lesson = GetParam();
  const Grade& got = graded_file(find_lesson(lesson.lesson), "solution.cpp");
  ASSERT_EQ(got.unrecorded, "");
  std::vector<std::string> files;
  for (const std::string& path : got.recordings) files.push_back(fs::path(path).filename());
  ASSERT_EQ(files, lesson.files);
  const TraceFile yours = read_chrome_trace((fs::path(got.recordings[0]).parent_path() / "yours.json.gz").string());
  EXPECT_EQ(yours.ranks.size(), static_cast<size_t>(lesson.ranks));
  for (const RankTrace& rank : yours.ranks) EXPECT_FALSE(rank.events.empty()) << rank.global_rank;
  if (lesson.files.size() == 1) return;
  const TraceFile right = read_chrome_trace((fs::path(got.recordings[0]).parent_path() / "right.json.gz").string());
  ASSERT_EQ(right.ranks.size(), yours.ranks.size());
  const auto end_of = [](const TraceFile& file) {
    int64_t end = 0;
    for (const RankTrace& rank : file.ranks)
      for (const Event& event : rank.events) end = std::max(end, event.virtual_end_ns);
    return end;
  };
  EXPECT_EQ(end_of(yours), end_of(right));
}

INSTANTIATE_TEST_SUITE_P(All, Recordings, ::testing::ValuesIn(kRecorded),
                         [](const auto& test) { return std::string(test.param.lesson); });

TEST(RecordingsOfNothing, AnAnswerThatCannotRunLeavesNoneOfBefore) {
  const fs::path folder = fs::path(::testing::TempDir()) / "recordings_none";
  fs::create_directories(folder);
  const LessonRow& row = find_lesson("why_pipelines_idle");
  const GradeOptions options{.limit = std::chrono::minutes(2), .recordings = folder};
  ASSERT_EQ(grade(row, row.folder() / "solution.cpp", options).recordings.size(), 2u);
  const ExerciseFile file(changed_solution(row.slug, "order.backward(done);", "if (rank != 3) order.backward(done);"));
  EXPECT_EQ(grade(row, file.path(), options).recordings.size(), 0u);
  EXPECT_TRUE(fs::is_empty(folder));
  fs::remove_all(folder);
}

TEST(RecordingsOfNothing, AFolderThatIsNoneDoesNotChangeTheVerdict) {
  const LessonRow& row = find_lesson("why_pipelines_idle");
  const Grade got =
      grade(row, row.folder() / "solution.cpp", {.limit = std::chrono::minutes(2), .recordings = "/no/such/folder"});
  EXPECT_TRUE(got.passed());
  EXPECT_NE(got.unrecorded.find("/no/such/folder"), std::string::npos) << got.unrecorded;
}

}  // namespace
}  // namespace ranklab::lesson
