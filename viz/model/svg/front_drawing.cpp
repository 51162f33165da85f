#include "viz/model/svg/front_drawing.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/text.h"
#include "viz/model/svg/nice_step.h"

namespace ranklab::viz {
namespace {

constexpr double kWidth = 860, kPlotHeight = 430, kLeft = 64, kRight = kWidth - 24, kTop = 52,
                 kBottom = kPlotHeight - 44;
constexpr double kRow = 18, kGiB = 1024.0 * 1024 * 1024;
constexpr int kWordText = 12, kMarkText = 11, kMarks = 8;
constexpr Rgba kFront = 0x0072B2FF, kOther = 0xB0B0B0FF, kLimit = 0xD55E00FF;

class Front {
 public:
  Front(const std::vector<FrontPoint>& points, double most_bytes) : points_(points), most_(most_bytes / kGiB) {
    memory_ = most_;
    for (const FrontPoint& point : points) {
      memory_ = std::max(memory_, point.bytes / kGiB);
      longest_ = std::max(longest_, point.step_s);
      if (point.on_front) front_.push_back(&point);
    }
    memory_ *= 1.05, longest_ *= 1.08;
    std::ranges::stable_sort(front_, {}, [](const FrontPoint* point) { return point->step_s; });
  }

  Drawing drawing(const std::string& title) {
    drawing_.text(kLeft, 24, 15, kInk, title);
    axes();
    for (const FrontPoint& point : points_)
      if (!point.on_front) dot(point, kOther, 3);
    join();
    for (size_t i = 0; i < front_.size(); ++i) {
      dot(*front_[i], kFront, 5);
      drawing_.text(x(*front_[i]) + 8, y(*front_[i]) - 6, kWordText, kInk, std::to_string(i + 1));
      drawing_.text(kLeft, kPlotHeight + kRow * static_cast<double>(i + 1), kWordText, kInk,
                    strprintf("%zu  ", i + 1) + front_[i]->name + ": " + words(*front_[i]));
    }
    drawing_.width = kWidth;
    drawing_.height = kPlotHeight + kRow * (static_cast<double>(front_.size()) + 1);
    return std::move(drawing_);
  }

 private:
  static std::string words(const FrontPoint& point) {
    return human_ns(point.step_s * 1e9) + ", " + human_bytes(point.bytes);
  }
  double across(double gib) const { return kLeft + gib / memory_ * (kRight - kLeft); }
  double up(double seconds) const { return kBottom - seconds / longest_ * (kBottom - kTop); }
  double x(const FrontPoint& point) const { return across(point.bytes / kGiB); }
  double y(const FrontPoint& point) const { return up(point.step_s); }

  void axes() {
    const double gib = nice_step(memory_, kMarks), seconds = nice_step(longest_, kMarks);
    for (int i = 0; i * gib <= memory_; ++i) {
      drawing_.line(across(i * gib), kBottom, across(i * gib), kBottom + 4, kRule);
      drawing_.centred_text(across(i * gib), kBottom + 17, kMarkText, kInk, strprintf("%g", i * gib));
    }
    for (int i = 0; i * seconds <= longest_; ++i) {
      drawing_.line(kLeft - 4, up(i * seconds), kLeft, up(i * seconds), kRule);
      drawing_.right_text(kLeft - 8, up(i * seconds) + 4, kMarkText, kInk, strprintf("%g", i * seconds));
    }
    drawing_.line(kLeft, kBottom, kRight, kBottom, kRule);
    drawing_.line(kLeft, kTop, kLeft, kBottom, kRule);
    drawing_.right_text(kRight, kBottom + 34, kWordText, kInk, "memory of a rank, GiB");
    drawing_.text(kLeft + 8, kTop + 4, kWordText, kInk, "step, s");
    drawing_.line(across(most_), kTop, across(most_), kBottom, kLimit);
    drawing_.right_text(across(most_) - 6, kTop + 4, kMarkText, kLimit, "fits up to here");
  }

  void dot(const FrontPoint& point, Rgba colour, double radius) {
    drawing_.rect(x(point) - radius, y(point) - radius, 2 * radius, 2 * radius, colour,
                  point.name + ": " + words(point));
  }

  // The least step time of a layout with at most that memory: steps, because there are no layouts in between.
  void join() {
    for (size_t i = 0; i + 1 < front_.size(); ++i) {
      const FrontPoint &fast = *front_[i], &small = *front_[i + 1];
      drawing_.line(x(fast), y(fast), x(fast), y(small), kFront);
      drawing_.line(x(fast), y(small), x(small), y(small), kFront);
    }
  }

  const std::vector<FrontPoint>& points_;
  double most_, memory_ = 0, longest_ = 0;
  std::vector<const FrontPoint*> front_;  // sorted by step time, the fastest first
  Drawing drawing_;
};

}  // namespace

Drawing front_drawing(const std::string& title, const std::vector<FrontPoint>& points, double most_bytes) {
  return Front(points, most_bytes).drawing(title);
}

}  // namespace ranklab::viz
