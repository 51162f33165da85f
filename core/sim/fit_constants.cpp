#include "core/sim/fit_constants.h"

#include <algorithm>
#include <cmath>

namespace ranklab {
namespace {

using Point = std::vector<double>;
constexpr int kStarts = 4;

struct Corner {
  Point at;
  double error = 0;
};

class Simplex {
 public:
  Simplex(const Point& start, const std::function<double(const Point&)>& error) : error_(error) {
    constexpr double kFirstStep = 0.5;
    add(start);
    for (size_t i = 0; i < start.size(); ++i) {
      Point moved = start;
      moved[i] += kFirstStep;
      add(moved);
    }
    sort();
  }

  void step() {
    const Corner& worst = corners_.back();
    const Corner mirrored = along(1);
    if (mirrored.error < corners_.front().error) {
      const Corner further = along(2);
      return replace(further.error < mirrored.error ? further : mirrored);
    }
    if (mirrored.error < corners_[corners_.size() - 2].error) return replace(mirrored);
    const Corner nearer = along(mirrored.error < worst.error ? 0.5 : -0.5);
    if (nearer.error < std::min(worst.error, mirrored.error)) return replace(nearer);
    shrink();
  }
  const Corner& best() const { return corners_.front(); }

 private:
  void add(const Point& at) { corners_.push_back({at, error_(at)}); }
  void sort() { std::ranges::stable_sort(corners_, {}, &Corner::error); }
  // The point on the line from the worst corner through the middle of the others that is `far` times as far behind the
  // middle as the worst corner is in front of it.
  Corner along(double far) const {
    Point at(corners_[0].at.size());
    for (size_t i = 0; i < at.size(); ++i) {
      double middle = 0;
      for (size_t c = 0; c + 1 < corners_.size(); ++c) middle += corners_[c].at[i];
      middle /= static_cast<double>(corners_.size() - 1);
      at[i] = middle + far * (middle - corners_.back().at[i]);
    }
    return {at, error_(at)};
  }
  void replace(const Corner& corner) {
    corners_.back() = corner;
    sort();
  }
  void shrink() {
    for (size_t c = 1; c < corners_.size(); ++c) {
      for (size_t i = 0; i < corners_[c].at.size(); ++i)
        corners_[c].at[i] = (corners_[c].at[i] + corners_[0].at[i]) / 2;
      corners_[c].error = error_(corners_[c].at);
    }
    sort();
  }

  const std::function<double(const Point&)>& error_;
  std::vector<Corner> corners_;
};

Point exponentials(const Point& logarithms) {
  Point out;
  for (const double value : logarithms) out.push_back(std::exp(value));
  return out;
}

}  // namespace

std::vector<double> fit_constants(const std::vector<double>& start,
                                  const std::function<double(std::span<const double>)>& error, int rounds) {
  Point logarithms;
  for (const double value : start) logarithms.push_back(std::log(value));
  const std::function<double(const Point&)> of_logarithms = [&](const Point& at) { return error(exponentials(at)); };
  // A simplex that has become small in a valley is restarted where it is.
  for (int restart = 0; restart < kStarts; ++restart) {
    Simplex simplex(logarithms, of_logarithms);
    for (int round = 0; round < rounds / kStarts; ++round) simplex.step();
    logarithms = simplex.best().at;
  }
  return exponentials(logarithms);
}

FitError fit_error(std::vector<double> ratios) {
  if (ratios.empty()) return {};
  for (double& ratio : ratios) ratio = std::abs(ratio - 1);
  std::ranges::sort(ratios);
  return {ratios[ratios.size() / 2], ratios[ratios.size() * 9 / 10]};
}

}  // namespace ranklab
