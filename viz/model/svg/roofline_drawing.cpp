#include "viz/model/svg/roofline_drawing.h"

#include <algorithm>
#include <cmath>

#include "core/base/text.h"

namespace ranklab::viz {
namespace {

constexpr double kRooflineHigh = 330, kLeftOfPlot = 64, kAboveRoof = 1.9, kNoteHigh = 18;
constexpr Rgba kRoof = 0xD55E00FF, kSweep = 0x206AD0FF, kSingle = 0x3CB47EFF;
constexpr int kPointText = 11, kNoteText = 12;

class Plot {
 public:
  Plot(Drawing& drawing, const RooflinePicture& picture, double x, double y, double width)
      : drawing_(drawing),
        p_(picture),
        left_(x + kLeftOfPlot),
        right_(x + width),
        top_(y + 34),
        bottom_(y + kRooflineHigh) {
    knee_ = p_.peak_flops / p_.bytes_per_s;
    low_x_ = knee_ / 10, high_x_ = knee_ * 10;
    low_y_ = p_.peak_flops / 100;
    for (const RooflinePicture::Point& point : p_.points) {
      low_x_ = std::min(low_x_, point.intensity / 1.6), high_x_ = std::max(high_x_, point.intensity * 1.6);
      low_y_ = std::min(low_y_, point.flops / 1.6);
    }
  }

  double draw() {
    drawing_.text(left_ - kLeftOfPlot, top_ - 18, 14, kInk, p_.title);
    marks();
    roof();
    points();
    double y = bottom_ + 50;
    for (const std::string& note : p_.notes) {
      drawing_.text(left_, y, kNoteText, kInk, note);
      y += kNoteHigh;
    }
    return y - top_ + 34;
  }

 private:
  double across(double intensity) const {
    return left_ + std::log(intensity / low_x_) / std::log(high_x_ / low_x_) * (right_ - left_);
  }
  double up(double flops) const {
    return bottom_ - std::log(flops / low_y_) / std::log(p_.peak_flops * kAboveRoof / low_y_) * (bottom_ - top_);
  }

  void marks() {
    for (double x = std::pow(10, std::ceil(std::log10(low_x_))); x <= high_x_; x *= 10) {
      drawing_.line(across(x), top_, across(x), bottom_, kPaper);
      drawing_.line(across(x), bottom_, across(x), bottom_ + 4, kRule);
      drawing_.centred_text(across(x), bottom_ + 17, kPointText, kInk, strprintf("%g", x));
    }
    for (double y = std::pow(10, std::ceil(std::log10(low_y_))); y <= p_.peak_flops * kAboveRoof; y *= 10) {
      drawing_.line(left_, up(y), right_, up(y), kPaper);
      drawing_.line(left_ - 4, up(y), left_, up(y), kRule);
      drawing_.right_text(left_ - 8, up(y) + 4, kPointText, kInk, strprintf("%g", y * 1e-12));
    }
    drawing_.line(left_, bottom_, right_, bottom_, kRule);
    drawing_.line(left_, top_, left_, bottom_, kRule);
    drawing_.right_text(right_, bottom_ + 32, kNoteText, kInk, "FLOP per byte");
    drawing_.text(left_ + 8, top_ + 10, kNoteText, kInk, "TFLOP/s");
  }

  void roof() {
    const double begin = std::max(low_x_, low_y_ / p_.bytes_per_s);
    drawing_.line(across(begin), up(begin * p_.bytes_per_s), across(knee_), up(p_.peak_flops), kRoof);
    drawing_.line(across(knee_), up(p_.peak_flops), right_, up(p_.peak_flops), kRoof);
  }

  void points() {
    const RooflinePicture::Point* before = nullptr;
    for (const RooflinePicture::Point& point : p_.points) {
      const double x = across(point.intensity), y = up(point.flops);
      if (point.in_sweep && before != nullptr)
        drawing_.line(across(before->intensity), up(before->flops), x, y, kSweep);
      if (point.in_sweep) before = &point;
      const double radius = point.in_sweep ? 3.5 : 4.5;
      drawing_.rect(
          x - radius, y - radius, 2 * radius, 2 * radius, point.in_sweep ? kSweep : kSingle,
          strprintf("%s: %.3g FLOP per byte, %.4g TFLOP/s", point.name.c_str(), point.intensity, point.flops * 1e-12));
    }
    names();
  }

  static bool near(double x, double y, double other_x, double other_y) {
    return std::fabs(x - other_x) < 30 && std::fabs(y - other_y) < 14;
  }

  // The points of a sweep have names only if there is space, because they crowd where the rate no longer grows. Names
  // of other points are alternately above and below.
  void names() {
    double last_x = -1e9, last_y = -1e9, beside = -5;
    for (const RooflinePicture::Point& point : p_.points) {
      const double x = across(point.intensity), y = up(point.flops);
      if (!point.in_sweep) {
        drawing_.right_text(x - 9, y + beside, kPointText, kInk, point.name);
        beside = 15;
        continue;
      }
      // The last point always has its name.
      const bool is_last = &point == &p_.points.back();
      const bool close =
          near(x, y, last_x, last_y) || near(x, y, across(p_.points.back().intensity), up(p_.points.back().flops));
      if (close && !is_last) continue;
      last_x = x, last_y = y;
      drawing_.text(x + 7, y + 13, kPointText, kInk, point.name);
    }
    if (p_.sweep.empty()) return;
    drawing_.rect(right_ - 14, bottom_ - 20, 7, 7, kSweep);
    drawing_.right_text(right_ - 20, bottom_ - 13, kPointText, kInk, p_.sweep);
  }

  Drawing& drawing_;
  const RooflinePicture& p_;
  double left_, right_, top_, bottom_;
  double knee_ = 1, low_x_ = 1, high_x_ = 1, low_y_ = 1;
};

}  // namespace

double draw_roofline(Drawing& drawing, const RooflinePicture& picture, double x, double y, double width) {
  return Plot(drawing, picture, x, y, width).draw();
}

}  // namespace ranklab::viz
