// The small parts of the lessons: text, progress file, the learner's copies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "core/base/error.h"
#include "core/base/text.h"
#include "lessons/compare.h"
#include "lessons/markdown.h"
#include "lessons/progress.h"
#include "lessons/screen.h"
#include "lessons/workspace.h"

namespace ranklab::lesson {
namespace {

namespace fs = std::filesystem;

template <typename F>
std::string drawn(int width, bool color, F&& draw) {
  std::ostringstream out;
  Screen screen(out, width, color);
  draw(screen);
  return out.str();
}

TEST(Screen, CountsColumnsNotBytes) {
  EXPECT_EQ(columns_of("▒▒ x"), 4);
  EXPECT_EQ(columns_of("\033[31mred\033[0m"), 3);
  EXPECT_EQ(padded("▒", 3), "▒  ");
  EXPECT_EQ(padded_left("▒", 3), "  ▒");
}

TEST(Screen, WrapsAtItsWidth) {
  const std::string text = drawn(50, false, [](Screen& s) {
    EXPECT_EQ(s.width(), 80) << "no picture is narrower";
    s.paragraph(repeated("word ", 40), 2, 2);
  });
  EXPECT_THAT(text, testing::StartsWith("  word"));
  EXPECT_THAT(text, testing::HasSubstr("\n    word"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(columns_of(line), 50);
  drawn(500, false, [](Screen& s) { EXPECT_EQ(s.width(), 120) << "never wider"; });
}

TEST(Screen, AlignsNumbersToTheRight) {
  const std::string text = drawn(80, false, [](Screen& s) { s.table({{"name", "n"}, {"a", "7"}, {"b", "123"}}, 0); });
  EXPECT_EQ(text, "name    n\na       7\nb     123\n");
}

TEST(Screen, BreaksTheWordsOfATableThatIsTooWide) {
  const std::string text = drawn(40, false, [](Screen& s) {
    s.table({{"what", "expected", "got"}, {"ranks", "one two three four five six seven eight nine", "12"}});
  });
  EXPECT_EQ(text,
            "  what   expected                    got\n"
            "  ranks  one two three four five      12\n"
            "         six seven eight nine\n");
}

TEST(Screen, PutsPicturesSideBySideAsFarAsTheyFit) {
  const Cells picture(2, std::string(30, 'x'));
  const std::string text = drawn(80, false, [&](Screen& s) { s.side_by_side({picture, picture, picture}, 3, 2); });
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5) << "two, an empty line, and one more";
  const std::string narrow = drawn(60, false, [&](Screen& s) { s.side_by_side({picture, picture, picture}, 3, 2); });
  EXPECT_EQ(std::count(narrow.begin(), narrow.end(), '\n'), 8) << "one below the other";
}

TEST(Markdown, ShowsWhatTheLessonsUse) {
  const std::string text = drawn(80, false, [](Screen& s) {
    show_markdown(s,
                  "# Title\n\nSome **bold** and *soft*\n`code`.\n\n- one\n- two\n\n| a | b |\n|---|---|\n| x | y |\n"
                  "\n```\n  as **it** is\n```\n");
  });
  EXPECT_EQ(text,
            "Title\n\n  Some bold and soft `code`.\n\n  - one\n  - two\n\n    a  b\n    x  y\n\n      as **it** is\n");
}

TEST(Markdown, FindsSectionsAndBoldPieces) {
  EXPECT_EQ(sections_of("# t\n\n## one\n\na\n\n## two\nb\n"), (std::vector<std::string>{"a\n\n", "b\n"}));
  EXPECT_EQ(bold_pieces("x **1** y **2 S**"), (std::vector<std::string>{"1", "2 S"}));
}

class InAFolder : public ::testing::Test {
 protected:
  InAFolder() : folder_(fs::path(::testing::TempDir()) / ("ranklab_parts_" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    ::setenv("RANKLAB_STATE_DIR", (folder_ / "state").c_str(), 1);
    fs::current_path(folder_);
  }
  ~InAFolder() override {
    fs::current_path("/");
    fs::remove_all(folder_);
  }
  const fs::path folder_;
};

TEST_F(InAFolder, ProgressSurvives) {
  Progress progress = Progress::load();
  EXPECT_EQ(progress.current, 0);
  progress.current = 2;
  progress.lessons["all_reduce"] = {"/x/exercise.cpp", "1.75", 2, 5, true, false};
  progress.save();
  const Progress again = Progress::load();
  EXPECT_EQ(again.current, 2);
  const LessonState& state = again.lessons.at("all_reduce");
  EXPECT_EQ(state.exercise, "/x/exercise.cpp");
  EXPECT_EQ(state.prediction, "1.75");
  EXPECT_EQ(state.hints, 2);
  EXPECT_EQ(state.attempts, 5);
  EXPECT_TRUE(state.passed);
  EXPECT_FALSE(state.solution_seen);
  const auto files = std::distance(fs::directory_iterator(folder_ / "state"), fs::directory_iterator());
  EXPECT_EQ(files, 1) << "no temporary file stays";
}

TEST_F(InAFolder, ADamagedProgressFileIsNamed) {
  Progress().save();
  for (const char* text : {"{", "[]", R"({"schema": 2, "current": 0, "lessons": {}})", R"({"schema": 1})"}) {
    std::ofstream(Progress::file()) << text;
    try {
      Progress::load();
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kBadFile);
      EXPECT_THAT(error.what(), testing::HasSubstr("lessons.json"));
    }
  }
}

TEST_F(InAFolder, TheStateFolderFollowsTheEnvironment) {
  EXPECT_EQ(Progress::file(), folder_ / "state/lessons.json");
  ::unsetenv("RANKLAB_STATE_DIR");
  ::setenv("XDG_STATE_HOME", "/xdg", 1);
  EXPECT_EQ(Progress::file(), "/xdg/ranklab/lessons.json");
  ::unsetenv("XDG_STATE_HOME");
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(Progress::file(), "/home/me/.local/state/ranklab/lessons.json");
}

TEST_F(InAFolder, CopiesNeverOverwrite) {
  const LessonRow& row = find_lesson("all_reduce");
  const fs::path path = exercise_path(row);
  EXPECT_EQ(path, folder_ / "ranklab-lessons/01_all_reduce/exercise.cpp");
  EXPECT_TRUE(copy_exercise(row, path));
  EXPECT_EQ(read_text(path), read_text(row.folder() / "exercise.cpp"));
  std::ofstream(path) << "my work";
  EXPECT_FALSE(copy_exercise(row, path));
  EXPECT_EQ(read_text(path), "my work");

  const fs::path first = reset_exercise(row, path);
  std::ofstream(path) << "my second work";
  const fs::path second = reset_exercise(row, path);
  EXPECT_NE(first, second);
  EXPECT_EQ(read_text(first), "my work");
  EXPECT_EQ(read_text(second), "my second work");
  EXPECT_EQ(read_text(path), read_text(row.folder() / "exercise.cpp"));
  fs::remove(path);
  EXPECT_EQ(reset_exercise(row, path), fs::path());
}

TEST(LessonSearch, FindsByNumberAndName) {
  EXPECT_EQ(find_lesson("3").slug, "split_matmul");
  EXPECT_EQ(find_lesson("all_reduce").number, 1);
  EXPECT_EQ(find_lesson("02_replicas_stay_equal").number, 2);
  try {
    find_lesson("al_reduce");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInvalidArgument);
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean " + quote("all_reduce") + "?"));
  }
}

TEST(Compare, CountsListsThatDiffer) {
  EXPECT_EQ(different({{1, 2}, {1, 2}, {1, 3}}), 2);
  EXPECT_EQ(different({{0.0}, {-0.0}}), 2) << "in their bits";
}

TEST(Compare, FindsTheLargestDifference) {
  EXPECT_EQ(spread({{1, 2}, {1, 2.5}, {4, 2}}), 3);
  EXPECT_EQ(relative_error({{1, 2}, {1, 6}}, std::vector<double>{1, -4}), 10.0 / 4);
}

// Whatever the other lists hold: a comparison with NaN is false, so that the next number replaces it easily.
TEST(Compare, NeverLosesANan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(spread({{1, 2}, {nan, 2}, {1, 3}})));
  EXPECT_TRUE(std::isnan(relative_error({{nan, 2}, {1, 2}}, std::vector<double>{1, 2})));
}

}  // namespace
}  // namespace ranklab::lesson
