// A table of words and numbers: aligned and wrapped for people at a terminal, and Markdown elsewhere, so that a page of
// docs/ shows exactly what the program prints. Thread rule: one thread.
#pragma once
#include <string>
#include <vector>

namespace ranklab {

class Table {
 public:
  explicit Table(std::vector<std::string> head) : head_(std::move(head)) {}
  void add(std::vector<std::string> row);  // REQUIRES: as many cells as the head

  std::string markdown() const;
  // Lines of at most `columns` (at least 40) as far as words allow: the widest columns are wrapped between words. Text
  // in backticks loses these, and columns of numbers are aligned to the right.
  std::string aligned(int columns) const;
  // aligned() to the terminal's width if stdout is a terminal, else markdown().
  std::string for_stdout() const;

 private:
  std::vector<std::string> head_;
  std::vector<std::vector<std::string>> rows_;
};

// The number of terminal columns that UTF-8 text takes, counted as its code points.
int display_columns(const std::string& text);
// Breaks text between words into lines of at most `columns`; a longer word gets a line of its own. RETURNS: at least
// one line.
std::vector<std::string> wrapped_lines(const std::string& text, int columns);

}  // namespace ranklab
