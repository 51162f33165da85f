#include "viz/html/report/line_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/text.h"
#include "viz/html/report/html_text.h"
#include "viz/model/svg/markup.h"
#include "viz/model/svg/nice_step.h"

namespace ranklab::viz {
namespace {

constexpr double kWidth = 380, kHeight = 222, kLeft = 58, kRight = kWidth - 14, kTop = 46, kBottom = kHeight - 34;
constexpr int kMostMarks = 12;
constexpr size_t kMostMarksOfBad = 50;
constexpr double kLeastRange = 0.1, kTiny = 1e-12;
constexpr double kLargest = 1e300;  // the difference of two such values is still finite

bool can_be_drawn(double value) { return std::abs(value) < kLargest; }  // false for NaN

// The text of an axis' mark: precise enough that marks `step` apart differ.
std::string mark_text(double value, double step) {
  const double size = std::max(std::abs(value), step);
  if (size >= 1e6 || size < 1e-3) return strprintf("%.3g", value);
  if (size >= 1e4) return human_count(value);
  const int decimals = std::clamp(static_cast<int>(std::ceil(-std::log10(step) - 1e-9)), 0, 6);
  return strprintf("%.*f", decimals, value);
}

class Chart {
 public:
  Chart(const std::string& title, const std::string& unit, const std::vector<ChartLine>& lines)
      : title_(title), unit_(unit), lines_(lines) {
    for (const ChartLine& line : lines) {
      for (const CurvePoint& point : line.curve->points) {
        first_ = std::min(first_, static_cast<double>(point.step));
        last_ = std::max(last_, static_cast<double>(point.step));
        if (!can_be_drawn(point.value)) continue;
        low_ = std::min(low_, can_be_drawn(point.low) ? point.low : point.value);
        high_ = std::max(high_, can_be_drawn(point.high) ? point.high : point.value);
      }
    }
    any_ = low_ <= high_;
    if (!any_) low_ = 0, high_ = 1;
    if (first_ > last_) first_ = 0, last_ = 1;
    if (first_ == last_) first_ -= 0.5, last_ += 0.5;
    // A curve that hardly changes is drawn as flat, because its last digits carry no information.
    const double middle = low_ / 2 + high_ / 2, least = std::max(std::abs(middle) * kLeastRange, kTiny);
    const bool flat = high_ - low_ < least;
    const double room = flat ? least / 2 : 0.06 * (high_ - low_);
    if (flat) low_ = high_ = middle;
    // The axis of values that are never below zero does not extend below zero.
    low_ = low_ >= 0 ? std::max(0.0, low_ - room) : low_ - room;
    high_ += room;
  }

  std::string svg() {
    axes();
    for (const ChartLine& line : lines_) draw(line);
    heading();
    if (!any_) text((kLeft + kRight) / 2, (kTop + kBottom) / 2, "no finite value", "faint", "middle");
    return strprintf("<svg class=\"chart\" role=\"img\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" height=\"%.0f\"",
                     kWidth, kHeight, kWidth, kHeight) +
           " aria-label=\"" + as_markup(title_ + " over steps") + "\"" +
           strprintf(" data-plot=\"%g %g %.9g %.9g\">\n", kLeft, kRight, first_, last_) + body_ +
           strprintf("<line class=\"cursor\" visibility=\"hidden\" x1=\"0\" x2=\"0\" y1=\"%g\" y2=\"%g\"/>\n", kTop,
                     kBottom) +
           "</svg>\n";
  }

 private:
  double x(double step) const { return kLeft + (step - first_) / (last_ - first_) * (kRight - kLeft); }
  double y(double value) const {
    return kBottom - std::clamp((value - low_) / (high_ - low_), 0.0, 1.0) * (kBottom - kTop);
  }
  void text(double at_x, double at_y, const std::string& words, const char* css_class, const char* anchor) {
    body_ += strprintf("<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\" class=\"%s\" text-anchor=\"%s\">", at_x, at_y,
                       css_class, anchor) +
             as_markup(words) + "</text>\n";
  }
  void rule(double x0, double y0, double x1, double y1) {
    body_ += strprintf("<line class=\"rule\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x0, y0, x1, y1);
  }

  void axes() {
    const double up = nice_step(high_ - low_, 5), lowest = std::ceil(low_ / up) * up;
    for (int i = 0; i <= kMostMarks; ++i) {  // multiplied, since adding up would lose the step next to a large value
      const double value = lowest + i * up;
      if (!(value <= high_ + up * 1e-6)) break;
      rule(kLeft, y(value), kRight, y(value));
      text(kLeft - 6, y(value) + 4, mark_text(std::abs(value) < up * 1e-6 ? 0 : value, up), "faint", "end");
    }
    const double along = std::max(1.0, nice_step(last_ - first_, 6)), earliest = std::ceil(first_ / along) * along;
    for (int i = 0; i <= kMostMarks && earliest + i * along <= last_; ++i) {
      const double step = earliest + i * along;
      rule(x(step), kBottom, x(step), kBottom + 4);
      text(x(step), kBottom + 16, last_ >= 1e5 ? human_count(step) : strprintf("%.0f", step), "faint", "middle");
    }
    rule(kLeft, kBottom, kRight, kBottom);
    text(kRight, kBottom + 30, "step", "faint", "end");
  }

  void draw(const ChartLine& line) {
    // A line ends where a value is not finite, and a new one begins after it.
    std::vector<CurvePoint> piece;
    std::string corners;
    for (const CurvePoint& point : line.curve->points) {
      if (can_be_drawn(point.value)) {
        piece.push_back(point);
        corners += strprintf("%s%.1f,%.6g", corners.empty() ? "" : " ", x(point.step), point.value);
        continue;
      }
      draw_piece(line, piece);
      piece.clear();
    }
    draw_piece(line, piece);
    for (size_t i = 0; i < std::min(line.curve->bad_steps.size(), kMostMarksOfBad); ++i)
      mark_bad(line.curve->bad_steps[i]);
    if (corners.empty()) return;
    // One path for all pieces; report.js shows its values when the user points at the chart.
    body_ += "<path class=\"line " + line.css_class + "\" data-name=\"" + as_markup(line.name) + "\" data-at=\"" +
             corners + "\" d=\"" + path_ + "\"/>\n";
    path_.clear();
  }

  void draw_piece(const ChartLine& line, const std::vector<CurvePoint>& piece) {
    if (piece.empty()) return;
    if (piece.size() == 1)
      body_ += strprintf("<circle class=\"dot %s\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\"/>\n", line.css_class.c_str(),
                         x(piece[0].step), y(piece[0].value));
    const bool band = std::any_of(piece.begin(), piece.end(), [](const CurvePoint& p) { return p.low < p.high; });
    if (band && piece.size() > 1) {
      body_ += "<polygon class=\"band " + line.css_class + "\" points=\"";
      for (const CurvePoint& point : piece) body_ += strprintf("%.1f,%.1f ", x(point.step), y(point.high));
      for (auto point = piece.rbegin(); point != piece.rend(); ++point)
        body_ += strprintf("%.1f,%.1f ", x(point->step), y(point->low));
      body_ += "\"/>\n";
    }
    for (size_t i = 0; i < piece.size(); ++i)
      path_ += strprintf("%s%.1f %.1f", i == 0 ? "M" : "L", x(piece[i].step), y(piece[i].value));
  }

  void mark_bad(int step) {
    if (step < first_ || step > last_) return;
    body_ += strprintf("<path class=\"notfinite\" d=\"M%.1f %.1fl4 7h-8z\"><title>step %d: not finite</title></path>\n",
                       x(step), kBottom - 8, step);
  }

  void heading() {
    body_ += "<text x=\"4\" y=\"15\" font-size=\"13\" class=\"ink\">" + as_markup(title_) +
             (unit_.empty() ? "" : " <tspan class=\"faint\" font-size=\"11\">" + as_markup(unit_) + "</tspan>") +
             "</text>\n";
    double left = kLeft;
    for (const ChartLine& line : lines_) {
      const size_t bad = line.curve->bad_steps.size();
      const std::string name =
          line.name + (bad == 0 ? "" : strprintf("%s%zu not finite", line.name.empty() ? "" : ", ", bad));
      if (name.empty()) continue;
      body_ += strprintf("<path class=\"line %s\" d=\"M%.1f 30h18\"/>\n", ("key " + line.css_class).c_str(), left);
      text(left + 23, 34, name, "faint", "start");
      left += 34 + kCharacterWidth * static_cast<double>(name.size());
    }
  }

  const std::string& title_;
  const std::string& unit_;
  const std::vector<ChartLine>& lines_;
  double first_ = std::numeric_limits<double>::infinity(), last_ = -first_, low_ = first_, high_ = -first_;
  bool any_ = false;
  std::string body_, path_;
};

}  // namespace

std::string line_chart(const std::string& title, const std::string& unit, const std::vector<ChartLine>& lines) {
  return lines.empty() ? "" : Chart(title, unit, lines).svg();
}

}  // namespace ranklab::viz
