#include "viz/model/parity/parity_svg.h"

#include <algorithm>
#include <sstream>

#include "core/base/text.h"
#include "viz/model/parity/parity_lines.h"
#include "viz/model/svg/svg_writer.h"

namespace ranklab::viz {
namespace {

constexpr double kSvgMargin = 16, kNameColumn = 300, kCellHigh = 18, kLineHigh = 15, kDistanceColumn = 190,
                 kLeastWidth = 900;
constexpr size_t kDrawnRanks = 64, kNameCharacters = 44;
constexpr double kLetterWidth = 6.1;  // of a text of size 11
constexpr Rgba kSvgBlack = 0x1B2027FF, kSvgDim = 0x545D6AFF, kNoPart = 0xE1E3E6FF, kSvgBorder = 0xCCD2DAFF;

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

std::vector<std::string> wrapped(const std::string& text, size_t characters) {
  std::vector<std::string> lines(1);
  for (const std::string& word : words_of(text)) {
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > characters) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

// The end of a name says more than its beginning.
std::string shortened(const std::string& text) {
  if (text.size() <= kNameCharacters) return text;
  size_t from = text.size() - kNameCharacters + 1;
  while (from < text.size() && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) ++from;
  return "\u2026" + text.substr(from);
}

class Drawing {
 public:
  explicit Drawing(const ParityMap& map)
      : map_(map), ranks_(std::min(map.ranks.size(), kDrawnRanks)), first_(map.first_wrong()) {
    cell_ = ranks_ <= 8 ? 58 : ranks_ <= 16 ? 46 : ranks_ <= 32 ? 24 : 13;
    cells_left_ = kSvgMargin + kNameColumn;
    width_ = std::max(kLeastWidth, cells_left_ + static_cast<double>(ranks_) * cell_ + kDistanceColumn);
  }

  std::string document() {
    head();
    columns();
    for (const ParityLine& line : parity_lines(map_)) draw(line);
    legend();
    return svg_.document(width_, y_ + 8);
  }

 private:
  void paragraph(const std::string& text, double x, int size, Rgba colour) {
    const double character = kLetterWidth * size / 11;
    for (const std::string& line : wrapped(text, static_cast<size_t>((width_ - x - 12) / character))) {
      y_ += kLineHigh * size / 11;
      svg_.text(x, y_, size, colour, line);
    }
  }

  void head() {
    y_ = 6;
    paragraph(map_.title + " against " + map_.reference + ", " + map_.type, kSvgMargin, 11, kSvgDim);
    y_ += 3;
    paragraph(map_.verdict, kSvgMargin, 14, kSvgBlack);
    y_ += 10;
  }

  void columns() {
    std::vector<std::vector<std::string>> labels;
    size_t high = 1;
    for (size_t rank = 0; rank < ranks_; ++rank) {
      labels.push_back(words_of(map_.ranks[rank]));
      high = std::max(high, labels.back().size());
    }
    const bool named = cell_ >= 24;
    svg_.text(kSvgMargin, y_ + 12, 10, kSvgDim,
              ranks_ < map_.ranks.size() ? strprintf("ranks 0 to %zu", ranks_ - 1) : "rank");
    svg_.right_text(numbers_right(), y_ + 12, 10, kSvgDim, "eps of allowed");
    for (size_t rank = 0; rank < ranks_; ++rank) {
      if (cell_ < 20 && rank % 4 != 0) continue;
      svg_.centred_text(middle(rank), y_ + 12, 10, kSvgBlack, std::to_string(rank));
      for (size_t i = 0; named && i < labels[rank].size(); ++i)
        svg_.centred_text(middle(rank), y_ + 24 + 11 * static_cast<double>(i), is_narrow() ? 7 : 9, kSvgDim,
                          labels[rank][i]);
    }
    y_ += named ? 20 + 11 * static_cast<double>(high) : 18;
  }

  bool is_narrow() const { return cell_ < 40; }  // too narrow for numbers
  double numbers_right() const { return cells_left_ + static_cast<double>(ranks_) * cell_ + kDistanceColumn - 40; }
  double middle(size_t rank) const { return cells_left_ + (static_cast<double>(rank) + 0.5) * cell_; }

  void draw(const ParityLine& line) {
    if (line.kind == ParityLine::Kind::kPhase) {
      y_ += 8;
      svg_.line(kSvgMargin, y_, width_ - 12, y_, kSvgBorder);
      svg_.text(kSvgMargin, y_ + 14, 11, kSvgBlack, line.text);
      y_ += 19;
      return;
    }
    const bool is_first = first_ && line.begin == *first_, later = first_ && line.begin > *first_;
    const bool whole = line.kind == ParityLine::Kind::kTensor;
    svg_.text(kSvgMargin + 12, y_ + 13, 11, whole && !later ? kSvgBlack : kSvgDim, shortened(line.text));
    numbers(line);
    const std::vector<std::optional<size_t>> furthest = furthest_rows(map_, line.begin, line.end);
    for (size_t rank = 0; rank < ranks_; ++rank) cell(rank, furthest[rank], later);
    if (is_first) outline();
    y_ += kCellHigh;
    if (is_first) facts();
  }

  void numbers(const ParityLine& line) {
    const std::optional<ParityPlace> furthest = furthest_place(map_, line.begin, line.end);
    if (!furthest) return;
    const ParityRow& row = map_.rows[furthest->row];
    svg_.right_text(numbers_right(), y_ + 13, 10, kSvgDim, distance_text(row, *row.cells[furthest->rank]));
  }

  void cell(size_t rank, const std::optional<size_t>& at, bool later) {
    const double x = cells_left_ + static_cast<double>(rank) * cell_, gap = cell_ < 20 ? 0.5 : 1.5;
    if (!at) {
      svg_.rect(x, y_ + 1, cell_ - gap, kCellHigh - 2, kNoPart, false,
                "rank " + std::to_string(rank) + " has no part of it");
      svg_.centred_text(middle(rank), y_ + 13, 10, kSvgDim, "\u2013");
      return;
    }
    const ParityRow& row = map_.rows[*at];
    const ParityCell& one = *row.cells[rank];
    const ParityPaint paint = parity_paint(level_of(row, one), Ground::kLight, later);
    svg_.rect(x, y_ + 1, cell_ - gap, kCellHigh - 2, paint.fill, false,
              strprintf("%s on rank %zu (%s): ", row.text().c_str(), rank, map_.ranks[rank].c_str()) +
                  distance_text(row, one) + " eps");
    if (one.wrong) svg_.centred_text(middle(rank) - gap / 2, y_ + 13, 10, paint.text, mark_of(row, one, is_narrow()));
  }

  void outline() {
    svg_.raw(
        strprintf("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" rx=\"3\" fill=\"none\" "
                  "stroke=\"%s\" stroke-width=\"2\"/>\n",
                  kSvgMargin + 4, y_ - 1, numbers_right() - kSvgMargin + 2, kCellHigh + 1, hex(kSvgBlack).c_str()));
  }

  void facts() {
    y_ += 2;
    for (const ParityFact& fact : map_.facts) {
      svg_.text(kSvgMargin + 24, y_ + kLineHigh, 11, kSvgDim, fact.what);
      paragraph(fact.text, kSvgMargin + 150, 11, kSvgBlack);
    }
    y_ += 8;
  }

  void legend() {
    y_ += 18;
    svg_.line(kSvgMargin, y_ - 8, width_ - 12, y_ - 8, kSvgBorder);
    svg_.text(kSvgMargin, y_ + 13, 10, kSvgDim, "distance / tolerance");
    double x = kSvgMargin + 180;
    const double wide = (width_ - x - 12) / (kParityLevels + 1);
    for (size_t level = 0; level < kParityLevels; ++level, x += wide) {
      const ParityPaint paint = parity_paint(level, Ground::kLight, false);
      svg_.rect(x, y_, wide - 2, kCellHigh, paint.fill, false, "");
      svg_.centred_text(x + wide / 2, y_ + 13, wide < 76 ? 8 : 9, paint.text, words_of_level(level));
    }
    svg_.rect(x, y_, wide - 2, kCellHigh, kNoPart, false, "");
    svg_.centred_text(x + wide / 2, y_ + 13, 9, kSvgBlack, "\u2013 no part");
    y_ += kCellHigh + 4;
    svg_.text(kSvgMargin, y_ + 12, 10, kSvgDim,
              std::string("\u2717 wrong") +
                  (is_narrow() ? "" : ", and its multiple of the tolerance; without a number: copies or types differ") +
                  "; paler below the first wrong tensor: what follows from it.");
    y_ += 18;
  }

  const ParityMap& map_;
  SvgWriter svg_;
  size_t ranks_;
  std::optional<size_t> first_;
  double cell_ = 0, cells_left_ = 0, width_ = 0, y_ = 0;
};

}  // namespace

std::string parity_svg(const ParityMap& map) { return Drawing(map).document(); }

}  // namespace ranklab::viz
