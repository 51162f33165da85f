// The output of a lesson: a stream with a width between 80 and 120 columns (for paragraphs from 40 columns on), with or
// without colour. Colour is never the only cue. Thread rule: one thread.
#pragma once
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace ranklab::lesson {

enum class Ink { kBold, kDim, kItalic, kRed, kGreen, kYellow, kCyan };

using Cells = std::vector<std::string>;

class Screen {
 public:
  Screen(std::ostream& out, int width, bool color);  // the width is clamped

  int width() const { return width_; }
  bool color() const { return color_; }
  std::string paint(Ink ink, std::string_view text) const;

  void line(std::string_view text = "");
  void heading(std::string_view text);
  // Text wrapped to the terminal's width; lines after the first are indented by `hanging` more columns.
  void paragraph(std::string_view text, int indent = 2, int hanging = 0);
  // The first row is the header (may be empty). Columns of numbers are aligned to the right; if the table is too wide,
  // words take several lines.
  void table(const std::vector<Cells>& rows, int indent = 2);
  // Pictures next to each other, each a list of lines; as many in a row as fit.
  void side_by_side(const std::vector<Cells>& pictures, int gap = 3, int indent = 2);

 private:
  void narrow(std::vector<int>& widths, const std::vector<bool>& numeric, int indent) const;

  std::ostream& out_;
  int width_;  // for pictures
  int prose_;  // for paragraphs, and pictures next to each other
  bool color_;
};

// The number of terminal columns that UTF-8 text takes: its code points, without colour codes.
int columns_of(std::string_view text);
std::string padded(std::string_view text, int columns);       // padded on the right
std::string padded_left(std::string_view text, int columns);  // padded on the left
std::string repeated(std::string_view piece, int times);

}  // namespace ranklab::lesson
