#include "lessons/screen.h"

#include <algorithm>
#include <numeric>
#include <sstream>

namespace ranklab::lesson {
namespace {

constexpr int kNarrowest = 80, kNarrowestProse = 40;
constexpr int kWidest = 120;

const char* code_of(Ink ink) {
  switch (ink) {
    case Ink::kBold:
      return "1";
    case Ink::kDim:
      return "2";
    case Ink::kItalic:
      return "3";
    case Ink::kRed:
      return "31";
    case Ink::kGreen:
      return "32";
    case Ink::kYellow:
      return "33";
    case Ink::kCyan:
      return "36";
  }
  return "0";
}

// Breaks text at spaces into lines of at most so many columns; a longer word stays whole.
std::vector<std::string> lines_of(const std::string& cell, int columns) {
  if (columns_of(cell) <= columns) return {cell};
  std::vector<std::string> lines(1);
  std::istringstream words(cell);
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && columns_of(lines.back()) + 1 + columns_of(word) > columns) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

// Whether a cell is a number such as "14", "1.75 us", "-3" or "12.5 %"; numbers are aligned to the right.
bool is_number(const std::string& cell) {
  if (cell.empty()) return true;
  const char first = cell[0] == '-' && cell.size() > 1 ? cell[1] : cell[0];
  return first >= '0' && first <= '9';
}

}  // namespace

Screen::Screen(std::ostream& out, int width, bool color)
    : out_(out),
      width_(std::clamp(width, kNarrowest, kWidest)),
      prose_(std::clamp(width, kNarrowestProse, kWidest)),
      color_(color) {}

std::string Screen::paint(Ink ink, std::string_view text) const {
  if (!color_ || text.empty()) return std::string(text);
  return "\033[" + std::string(code_of(ink)) + "m" + std::string(text) + "\033[0m";
}

void Screen::line(std::string_view text) { out_ << text << "\n"; }

void Screen::heading(std::string_view text) {
  line();
  line(paint(Ink::kBold, text));
  line();
}

void Screen::paragraph(std::string_view text, int indent, int hanging) {
  std::istringstream words{std::string(text)};
  std::string current(static_cast<size_t>(indent), ' ');
  bool fresh = true;
  for (std::string word; words >> word;) {
    if (!fresh && columns_of(current) + 1 + columns_of(word) > prose_) {
      line(current);
      current.assign(static_cast<size_t>(indent + hanging), ' ');
      fresh = true;
    }
    current += (fresh ? "" : " ") + word;
    fresh = false;
  }
  if (!fresh) line(current);
}

void Screen::table(const std::vector<Cells>& rows, int indent) {
  if (rows.empty()) return;
  const size_t columns = rows[0].size();
  std::vector<int> widths(columns, 0);
  std::vector<bool> numeric(columns, true);
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t c = 0; c < columns; ++c) {
      widths[c] = std::max(widths[c], columns_of(rows[r][c]));
      if (r > 0 && !is_number(rows[r][c])) numeric[c] = false;
    }
  }
  narrow(widths, numeric, indent);
  for (size_t r = 0; r < rows.size(); ++r) {
    std::vector<std::vector<std::string>> cells;
    size_t height = 1;
    for (size_t c = 0; c < columns; ++c) {
      cells.push_back(lines_of(rows[r][c], widths[c]));
      height = std::max(height, cells.back().size());
    }
    for (size_t y = 0; y < height; ++y) {
      std::string text(static_cast<size_t>(indent), ' ');
      for (size_t c = 0; c < columns; ++c) {
        const std::string piece = y < cells[c].size() ? cells[c][y] : "";
        text += (c > 0 ? "  " : "") + (numeric[c] ? padded_left(piece, widths[c]) : padded(piece, widths[c]));
      }
      text.erase(text.find_last_not_of(' ') + 1);
      if (r > 0 || !text.empty()) line(r == 0 ? paint(Ink::kDim, text) : text);
    }
  }
}

// Narrows the widest columns of words until the table fits, or until they are as narrow as is readable.
void Screen::narrow(std::vector<int>& widths, const std::vector<bool>& numeric, int indent) const {
  constexpr int kNarrowestColumn = 12;
  const int gaps = indent + 2 * (static_cast<int>(widths.size()) - 1);
  while (std::accumulate(widths.begin(), widths.end(), gaps) > prose_) {
    int* widest = nullptr;
    for (size_t c = 0; c < widths.size(); ++c)
      if (!numeric[c] && (widest == nullptr || widths[c] > *widest)) widest = &widths[c];
    if (widest == nullptr || *widest <= kNarrowestColumn) return;
    --*widest;
  }
}

void Screen::side_by_side(const std::vector<Cells>& pictures, int gap, int indent) {
  size_t first = 0;
  while (first < pictures.size()) {
    size_t last = first;
    size_t height = 0;
    std::vector<int> widths;
    for (int used = indent; last < pictures.size(); ++last) {
      int wide = 0;
      for (const std::string& text : pictures[last]) wide = std::max(wide, columns_of(text));
      if (last > first && used + wide > prose_) break;
      used += wide + gap;
      widths.push_back(wide);
      height = std::max(height, pictures[last].size());
    }
    for (size_t row = 0; row < height; ++row) {
      std::string text(static_cast<size_t>(indent), ' ');
      for (size_t i = first; i < last; ++i) {
        const std::string piece = row < pictures[i].size() ? pictures[i][row] : "";
        text += padded(piece, widths[i - first] + gap);
      }
      text.erase(text.find_last_not_of(' ') + 1);
      line(text);
    }
    first = last;
    if (first < pictures.size()) line();
  }
}

int columns_of(std::string_view text) {
  int columns = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\033') {
      while (i < text.size() && text[i] != 'm') ++i;
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++columns;
    }
  }
  return columns;
}

std::string padded(std::string_view text, int columns) {
  return std::string(text) + std::string(static_cast<size_t>(std::max(0, columns - columns_of(text))), ' ');
}

std::string padded_left(std::string_view text, int columns) {
  return std::string(static_cast<size_t>(std::max(0, columns - columns_of(text))), ' ') + std::string(text);
}

std::string repeated(std::string_view piece, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += piece;
  return out;
}

}  // namespace ranklab::lesson
