#include "viz/model/svg.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/text.h"
#include "viz/model/critical_path.h"
#include "viz/model/legend.h"
#include "viz/model/level_of_detail.h"
#include "viz/model/store/time_text.h"
#include "viz/model/svg/svg_writer.h"
#include "viz/model/tables/bubbles.h"

namespace ranklab::viz {
namespace {

constexpr double kRowHeight = 20, kAxisRowHeight = 10, kGap = 5, kLabelWidth = 150, kMargin = 12, kCharacter = 6.2,
                 kLastMark = 20;  // space for half of the text under the last mark

class TimelineDrawing {
 public:
  TimelineDrawing(const TraceStore& store, const SvgOptions& options)
      : store_(store),
        options_(options),
        range_(options.range.empty() ? store.range() : options.range),
        width_(std::max(options.width - kLabelWidth - 2 * kMargin - kLastMark, 100.0)),
        report_(find_bubbles(store, {range_, -1})),
        svg_(options.place) {
    if (options.critical_path) path_ = find_critical_path(store, {range_, -1});
  }

  std::string draw() {
    hatch_patterns();
    double y = kMargin;
    for (const size_t r : drawn_ranks()) {
      for (const Row& row : store_.rank(r).rows) {
        const bool compute = row.label == "compute";
        if (row.label == "phase" || (!compute && !options_.axes)) continue;
        draw_row(r, row, compute, y);
        y += compute ? kRowHeight : kAxisRowHeight;
      }
      y += kGap;
    }
    y = draw_axis(y);
    y = draw_legend(y + 14);
    return svg_.document(options_.width, y + kMargin);
  }

 private:
  std::vector<size_t> drawn_ranks() const {
    std::vector<size_t> ranks = options_.ranks;
    for (size_t r = 0; options_.ranks.empty() && r < store_.ranks().size(); ++r) ranks.push_back(r);
    return ranks;
  }
  double x(int64_t time) const {
    return kMargin + kLabelWidth +
           static_cast<double>(time - range_.begin_ns) / static_cast<double>(range_.length_ns()) * width_;
  }

  void hatch_patterns() {
    for (size_t c = 0; c < kBubbleCauses; ++c)
      svg_.hatch("cause" + std::to_string(c), colour(static_cast<BubbleCause>(c)),
                 texture(static_cast<BubbleCause>(c)));
  }

  void draw_row(size_t r, const Row& row, bool compute, double y) {
    const double height = compute ? kRowHeight - 2 : kAxisRowHeight - 1;
    svg_.text(kMargin, y + height * 0.72, compute ? 11 : 8, kInk, compute ? store_.rank(r).label : "  " + row.label);
    if (compute) {
      for (const IdleInterval& idle : report_.ranks[r].idle)
        svg_.pattern_rect(x(idle.range.begin_ns), y, x(idle.range.end_ns) - x(idle.range.begin_ns), height,
                          "cause" + std::to_string(static_cast<size_t>(idle.cause)), describe(idle));
    }
    blocks_.clear();
    level_of_detail(row, range_, static_cast<float>(width_), blocks_, options_.least_pixels);
    for (const LodBlock& block : blocks_)
      if (!is_detail(block.paint)) draw_block(r, block, y, height);
  }

  void draw_block(size_t r, const LodBlock& block, double y, double height) {
    const EventRef ref = {r, block.event};
    drawn_[static_cast<size_t>(block.paint)] = true;
    const double inset = std::min<double>(block.depth, 2) * height / 6, left = kMargin + kLabelWidth + block.x0;
    const double width = std::max<double>(block.x1 - block.x0, 0.5);
    const std::string text = block.merged() ? std::to_string(block.count) + " events" : store_.text(ref);
    const bool critical = options_.critical_path && !block.merged() && path_.on_path(ref);
    svg_.rect(left, y + inset, width, height - 2 * inset, colour(block.paint), critical, text);
    const std::string_view word = letters(block.paint);
    const auto room = static_cast<size_t>(width / kCharacter);
    const std::string shown = text.size() <= room ? text : word.size() <= room ? std::string(word) : "";
    if (!block.merged() && height > 12 && !shown.empty())
      svg_.centred_text(left + width / 2, y + height * 0.7, 10, text_colour(block.paint), shown);
  }

  double draw_axis(double y) {
    const int64_t origin = store_.range().begin_ns;
    const int64_t step = axis_step_ns(range_.length_ns(), std::max(1, static_cast<int>(width_ / 90)));
    svg_.line(x(range_.begin_ns), y, x(range_.end_ns), y, kRule);
    for (int64_t time = (range_.begin_ns - origin + step - 1) / step * step; time + origin <= range_.end_ns;
         time += step) {
      svg_.line(x(time + origin), y, x(time + origin), y + 4, kRule);
      svg_.centred_text(x(time + origin), y + 14, 9, kInk, tick_text(store_, time, step));
    }
    return y + 16;
  }

  double draw_legend(double y) {
    std::string totals = "busy " + format_percent(report_.all.busy_share()) + ", bubble " +
                         format_percent(report_.all.bubble_of_total()) + " of total, " +
                         format_percent(report_.all.bubble_of_ideal()) + " of ideal, exposed comm " +
                         format_percent(report_.all.exposed_share()) + ", " + format_time(store_, range_.length_ns());
    svg_.text(kMargin, y, 10, kInk, totals);
    double left = kMargin;
    y += 16;
    // Places each entry at the next position with enough space.
    const auto entry = [&](const std::string& words, const auto& swatch) {
      const double width = 30 + kCharacter * static_cast<double>(words.size());
      if (left > kMargin && left + width > options_.width) {
        left = kMargin;
        y += 15;
      }
      swatch(words);
      svg_.text(left + 18, y, 9, kInk, words);
      left += width;
    };
    for (const LegendEntry& one : legend_of(drawn_))
      entry(one.words, [&](const std::string& words) { svg_.rect(left, y - 8, 14, 10, one.colour, false, words); });
    for (size_t c = 0; c < kBubbleCauses; ++c) {
      if (report_.all.by_cause_ns[c] == 0) continue;
      entry(std::string(name(static_cast<BubbleCause>(c))), [&](const std::string& words) {
        svg_.pattern_rect(left, y - 8, 14, 10, "cause" + std::to_string(c), words);
      });
    }
    return y;
  }

  const TraceStore& store_;
  const SvgOptions& options_;
  TimeRange range_;
  double width_;
  BubbleReport report_;
  CriticalPath path_;
  SvgWriter svg_;
  std::vector<LodBlock> blocks_;
  std::array<bool, kPaints> drawn_{};  // whether there is a block of the kind
};

// A blue that is stronger with more traffic, but never fully transparent, which would mean ink.
Rgba heat(double share) { return 0x0072B200U | static_cast<Rgba>(std::clamp<long>(std::lround(share * 255), 1, 255)); }

}  // namespace

std::string timeline_svg(const TraceStore& store, const SvgOptions& options) {
  if (store.empty()) return SvgWriter().document(options.width, 40);
  return TimelineDrawing(store, options).draw();
}

std::string matrix_svg(const TrafficMatrix& matrix, TrafficLayer layer, const std::string& title,
                       const MatrixSvgOptions& options) {
  constexpr double kHead = 60, kLeastForNumbers = 36;
  const double top = title.empty() ? 24 : kHead;
  const double cell = options.cell;
  SvgWriter svg(options.place);
  svg.hatch("local", options.place.in_page ? 0x8A93A0FF : 0xDDDDDDFF, Texture::kRising);
  if (!title.empty())
    svg.text(kMargin, 20, 13, kInk, title + " (" + std::string(name(layer)) + " bytes, row sends to column)");
  const auto largest = static_cast<double>(std::max<int64_t>(1, matrix.largest(layer)));
  const auto at = [&](size_t i) { return kHead + cell * static_cast<double>(i); };
  const auto down = [&](size_t i) { return top + cell * static_cast<double>(i); };
  const bool numbers = cell >= kLeastForNumbers;
  for (size_t i = 0; i <= matrix.size(); ++i) {
    if (!numbers && i % 8 != 0 && i != matrix.size()) continue;  // not enough space for every name
    const std::string word = i < matrix.size() ? "r" + std::to_string(matrix.ranks[i]) : "sum";
    svg.centred_text(at(i) + cell / 2, top - 8, 10, kInk, word);
    svg.text(kMargin, down(i) + cell / 2 + 3, 10, kInk, word);
  }
  for (size_t from = 0; from <= matrix.size(); ++from) {
    for (size_t to = 0; to <= matrix.size(); ++to) {
      const bool sum = from == matrix.size() || to == matrix.size();
      const int64_t bytes = !sum                                           ? matrix.at(from, to).of(layer)
                            : from == matrix.size() && to == matrix.size() ? matrix.total().of(layer)
                            : to == matrix.size()                          ? matrix.row_sum(from).of(layer)
                                                                           : matrix.column_sum(to).of(layer);
      const double share = sum ? 0 : static_cast<double>(bytes) / largest, gap = cell >= 20 ? 2 : 0.5;
      if (from == to && !sum) {
        svg.pattern_rect(at(to), down(from), cell - gap, cell - gap, "local", "local");
        continue;
      }
      svg.rect(at(to), down(from), cell - gap, cell - gap, sum ? kPaper : heat(share), false,
               std::to_string(bytes) + " bytes");
      if (bytes > 0 && numbers)
        svg.centred_text(at(to) + cell / 2, down(from) + cell / 2 + 3, cell < 56 ? 8 : 9,
                         share > 0.55 ? 0xFFFFFFFF : kInk, human_bytes(static_cast<double>(bytes)));
    }
  }
  return svg.document(at(matrix.size() + 1) + kMargin, down(matrix.size() + 1) + kMargin);
}

}  // namespace ranklab::viz
