// Every number that a lesson's README prints in bold is what the experiment gives, and every figure is printed. The
// experiment itself draws within the width, in plain text where colour is not wanted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <sstream>

#include "lessons/lesson_list.h"
#include "lessons/markdown.h"
#include "lessons/screen.h"
#include "tests/lessons/all_rows.h"

namespace ranklab::lesson {
namespace {

class Lessons : public ::testing::TestWithParam<const LessonRow*> {
 protected:
  const LessonRow& row() const { return *GetParam(); }
  std::string readme() const { return read_text(row().folder() / "README.md"); }
};

TEST_P(Lessons, TheReadmePrintsTheFigures) {
  const std::vector<Figure> figures = row().make()->figures();
  const std::vector<std::string> bold = bold_pieces(readme());
  ASSERT_FALSE(figures.empty());
  for (const Figure& figure : figures) EXPECT_THAT(bold, testing::Contains(figure.value)) << figure.name;
  for (const std::string& piece : bold) {
    const bool known = std::any_of(figures.begin(), figures.end(), [&](const Figure& f) { return f.value == piece; });
    EXPECT_TRUE(known) << "**" << piece << "** is no figure of the lesson";
  }
}

// A learner predicts before the experiment: no figure may be shown earlier.
TEST_P(Lessons, NothingIsGivenAwayBeforeTheExperiment) {
  const LessonText text = split_lesson_text(readme());
  EXPECT_EQ(bold_pieces(text.before), std::vector<std::string>{});
  EXPECT_THAT(text.after, testing::HasSubstr("Read more:"));
}

// One figure from a real cluster, and where it was published.
TEST_P(Lessons, SaysWhyOneShouldCare) {
  const std::string before = split_lesson_text(readme()).before;
  const size_t at = before.find("## Why should I care\n");
  ASSERT_NE(at, std::string::npos);
  const std::string why = before.substr(at, before.find("\n## ", at) - at);
  EXPECT_THAT(why, testing::ContainsRegex("[0-9]"));
  EXPECT_THAT(why, testing::AnyOf(testing::ContainsRegex("arXiv [0-9]{4}\\.[0-9]{5}"),
                                  testing::ContainsRegex("github\\.com/[A-Za-z0-9-]+/[A-Za-z0-9-]+")));
}

TEST_P(Lessons, TheExperimentFitsTheTerminal) {
  for (const int width : {80, 100, 120}) {
    std::ostringstream out;
    Screen screen(out, width, /*color=*/false);
    row().make()->run(screen);
    show_markdown(screen, readme());
    std::istringstream lines(out.str());
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(columns_of(line), width) << line;
      EXPECT_EQ(line.find('\033'), std::string::npos) << line;
    }
  }
}

TEST_P(Lessons, ColourAddsNothingButColour) {
  std::ostringstream plain, painted;
  Screen without(plain, 100, false), with(painted, 100, true);
  const double answer = row().make()->run(without);
  EXPECT_EQ(row().make()->run(with), answer) << "virtual time repeats";
  EXPECT_NE(painted.str(), plain.str());
  EXPECT_EQ(std::regex_replace(painted.str(), std::regex("\033\\[[0-9;]*m"), ""), plain.str());
}

TEST_P(Lessons, TheMeasuredAnswerIsTold) {
  // By hand: see each README. Lesson 10: erf(2^-10 / (0.001 sqrt 2)); 11: drawn 200,000 times elsewhere; 13: as
  // planned.
  const double expected[] = {7, 1.75, 25, 4, 100.0 * 21 / 45, 31, 2, 16, 4.0 / 3, 2.625, 67.12, 8.7, 800.0 / 15, 33,
                             4, 7,    0,  1, 100.0 * 14 / 34};
  std::ostringstream out;
  Screen screen(out, 100, false);
  const auto lesson = row().make();
  EXPECT_NEAR(lesson->run(screen), expected[row().number], lesson->question().tolerance);
  EXPECT_THAT(lesson->question().text, testing::EndsWith("?"));
}

INSTANTIATE_TEST_SUITE_P(All, Lessons, ::testing::ValuesIn(all_rows()),
                         [](const auto& test) { return test.param->slug; });

TEST(LessonList, IsNumberedFromZero) {
  int number = 0;
  for (const LessonRow& row : lesson_list()) {
    EXPECT_EQ(row.number, number++);
    EXPECT_EQ(sections_of(read_text(row.folder() / "hints.md")).size(), 3u) << row.slug;
  }
}

}  // namespace
}  // namespace ranklab::lesson
