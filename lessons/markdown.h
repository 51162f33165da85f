// Shows a lesson's README.md in the terminal: headings, paragraphs wrapped to the width, lists, tables, code verbatim.
// Supports only the part of Markdown that the lessons use. Thread rule: one thread.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "lessons/screen.h"

namespace ranklab::lesson {

void show_markdown(Screen& screen, std::string_view markdown);
// The two parts in which a README is shown: the text before the experiment, and the text about its results (with the
// rest).
struct LessonText {
  std::string before;
  std::string after;
};
LessonText split_lesson_text(const std::string& markdown);
// The texts under each "## " heading, in order, for hints.md.
std::vector<std::string> sections_of(std::string_view markdown);
// The contents of every **bold** piece.
std::vector<std::string> bold_pieces(std::string_view markdown);

}  // namespace ranklab::lesson
