#include "lessons/markdown.h"

#include <sstream>

namespace ranklab::lesson {
namespace {

// Styles **bold**, *emphasis* and `code`. Words stay separated by their blanks, so a styled piece wraps word by word.
std::string inline_styles(const Screen& screen, std::string_view text) {
  std::string out, word;
  bool bold = false, code = false, emphasis = false;
  const auto flush = [&] {
    out += bold       ? screen.paint(Ink::kBold, word)
           : code     ? screen.paint(Ink::kCyan, word)
           : emphasis ? screen.paint(Ink::kItalic, word)
                      : word;
    word.clear();
  };
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "**" && !code) {
      flush();
      bold = !bold;
      ++i;
    } else if (text[i] == '*' && !code) {
      flush();
      emphasis = !emphasis;
    } else if (text[i] == '`') {
      flush();
      code = !code;
      if (!screen.color()) out += '`';
    } else if (text[i] == ' ') {
      flush();
      out += ' ';
    } else {
      word += text[i];
    }
  }
  flush();
  return out;
}

Cells cells_of(const Screen& screen, const std::string& row) {
  Cells cells;
  std::istringstream in(row.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) {
    const size_t begin = cell.find_first_not_of(' '), end = cell.find_last_not_of(' ');
    cells.push_back(begin == std::string::npos ? "" : inline_styles(screen, cell.substr(begin, end - begin + 1)));
  }
  return cells;
}

class Renderer {
 public:
  explicit Renderer(Screen& screen) : screen_(screen) {}

  void feed(const std::string& line) {
    if (!line.empty()) print_blank_lines();
    if (line.starts_with("```")) {
      flush();
      in_code_ = !in_code_;
    } else if (in_code_) {
      screen_.line(line.empty() ? "" : "    " + line);
    } else if (line.starts_with("|")) {
      flush_text();
      if (line.find_first_not_of("|-: ") != std::string::npos) rows_.push_back(cells_of(screen_, line));
    } else if (line.starts_with("#")) {
      flush();
      screen_.line(screen_.paint(Ink::kBold, line.substr(line.find(' ') + 1)));
    } else if (line.empty()) {
      flush();
      ++blank_;
    } else {
      if (line.starts_with("- ") || (line.size() > 2 && line[0] >= '0' && line[0] <= '9' && line[1] == '.')) flush();
      text_ += (text_.empty() ? "" : " ") + line;
    }
  }

  void flush() {
    flush_text();
    if (!rows_.empty()) screen_.table(rows_, 4);
    rows_.clear();
  }

 private:
  // Printed only if text follows, so that a text ends with its last line.
  void print_blank_lines() {
    for (; blank_ > 0; --blank_) screen_.line();
  }

  void flush_text() {
    if (text_.empty()) return;
    const bool item = text_.starts_with("- ");
    const bool numbered = !item && text_.size() > 2 && text_[0] >= '0' && text_[0] <= '9' && text_[1] == '.';
    screen_.paragraph(inline_styles(screen_, text_), 2, item ? 2 : numbered ? 3 : 0);
    text_.clear();
  }

  Screen& screen_;
  std::string text_;
  std::vector<Cells> rows_;
  bool in_code_ = false;
  int blank_ = 0;
};

}  // namespace

void show_markdown(Screen& screen, std::string_view markdown) {
  Renderer renderer(screen);
  std::istringstream in{std::string(markdown)};
  for (std::string line; std::getline(in, line);) renderer.feed(line);
  renderer.flush();
}

LessonText split_lesson_text(const std::string& markdown) {
  const size_t at = markdown.find("## What the experiment shows");
  if (at == std::string::npos) return {markdown, ""};
  return {markdown.substr(0, at), markdown.substr(at)};
}

std::vector<std::string> sections_of(std::string_view markdown) {
  std::vector<std::string> sections;
  std::istringstream in{std::string(markdown)};
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) {
      sections.emplace_back();
    } else if (!sections.empty() && (!line.empty() || !sections.back().empty())) {
      sections.back() += line + "\n";
    }
  }
  return sections;
}

std::vector<std::string> bold_pieces(std::string_view markdown) {
  std::vector<std::string> pieces;
  for (size_t at = 0; (at = markdown.find("**", at)) != std::string_view::npos;) {
    const size_t end = markdown.find("**", at + 2);
    if (end == std::string_view::npos) break;
    pieces.emplace_back(markdown.substr(at + 2, end - at - 2));
    at = end + 2;
  }
  return pieces;
}

}  // namespace ranklab::lesson
