#include "cli/common/table.h"

#include <unistd.h>

#include <algorithm>
#include <numeric>
#include <sstream>
#include <utility>

#include "cli/common/terminal.h"
#include "core/base/error.h"
#include "core/base/system.h"

namespace ranklab {
namespace {

constexpr int kGap = 2;

std::string without_backticks(std::string text) {
  std::erase(text, '`');
  return text;
}

bool begins_with_digit(const std::string& cell) {
  const size_t at = !cell.empty() && (cell[0] == '-' || cell[0] == '+') ? 1 : 0;
  return at < cell.size() && cell[at] >= '0' && cell[at] <= '9' && cell.find(" x ") == std::string::npos;
}

std::string filled(const std::string& text, int columns, bool right) {
  const std::string blanks(static_cast<size_t>(std::max(0, columns - display_columns(text))), ' ');
  return right ? blanks + text : text + blanks;
}

int longest_word(const std::string& text) {
  int longest = 0;
  for (const std::string& word : wrapped_lines(text, 1)) longest = std::max(longest, display_columns(word));
  return longest;
}

// Until the line fits, narrows the widest column that is wider than its longest word.
void shrink(std::vector<int>& widths, const std::vector<int>& least, int columns) {
  const auto used = [&] {
    return std::accumulate(widths.begin(), widths.end(), 0) + kGap * (static_cast<int>(widths.size()) - 1);
  };
  while (used() > columns) {
    size_t widest = widths.size();
    for (size_t c = 0; c < widths.size(); ++c) {
      if (widths[c] > least[c] && (widest == widths.size() || widths[c] > widths[widest])) widest = c;
    }
    if (widest == widths.size()) return;
    --widths[widest];
  }
}

}  // namespace

int display_columns(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::vector<std::string> wrapped_lines(const std::string& text, int columns) {
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (display_columns(line) + 1 + display_columns(word) <= columns) {
      line += " " + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

void Table::add(std::vector<std::string> row) {
  RANKLAB_CHECK(row.size() == head_.size(), ErrorKind::kInternal, .where = "table",
                .what = "a row has as many cells as the head", .got = std::to_string(row.size()),
                .want = std::to_string(head_.size()));
  rows_.push_back(std::move(row));
}

std::string Table::markdown() const {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += " " + cell + " |";
    return text + "\n";
  };
  std::string text = line(head_) + "|";
  for (size_t c = 0; c < head_.size(); ++c) text += "---|";
  text += "\n";
  for (const auto& row : rows_) text += line(row);
  return text;
}

std::string Table::aligned(int columns) const {
  std::vector<int> widths, least;
  std::vector<bool> right;
  for (size_t c = 0; c < head_.size(); ++c) {
    int wide = display_columns(without_backticks(head_[c])), word = longest_word(without_backticks(head_[c]));
    bool numbers = !rows_.empty();
    for (const auto& row : rows_) {
      wide = std::max(wide, display_columns(without_backticks(row[c])));
      word = std::max(word, longest_word(without_backticks(row[c])));
      numbers = numbers && begins_with_digit(row[c]);
    }
    widths.push_back(wide);
    least.push_back(word);
    right.push_back(numbers);
  }
  shrink(widths, least, std::max(columns, 40));
  std::string text;
  const auto add_line = [&](const std::vector<std::string>& cells) {
    std::vector<std::vector<std::string>> parts;
    size_t height = 0;
    for (size_t c = 0; c < cells.size(); ++c) {
      parts.push_back(wrapped_lines(without_backticks(cells[c]), widths[c]));
      height = std::max(height, parts.back().size());
    }
    for (size_t i = 0; i < height; ++i) {
      std::string line;
      for (size_t c = 0; c < cells.size(); ++c)
        line +=
            std::string(c > 0 ? kGap : 0, ' ') + filled(i < parts[c].size() ? parts[c][i] : "", widths[c], right[c]);
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
  };
  add_line(head_);
  std::string rule;
  for (size_t c = 0; c < widths.size(); ++c) {
    rule += std::string(c > 0 ? kGap : 0, ' ');
    for (int i = 0; i < widths[c]; ++i) rule += "─";
  }
  text += rule + "\n";
  for (const auto& row : rows_) add_line(row);
  return text;
}

std::string Table::for_stdout() const {
  return on_terminal(STDOUT_FILENO) ? aligned(terminal_columns(100, STDOUT_FILENO)) : markdown();
}

}  // namespace ranklab
