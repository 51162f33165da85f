#include "lessons/18_how_rarely_may_replicas_talk/one_weight.h"

#include <algorithm>
#include <cmath>

namespace ranklab::lesson {
namespace {

constexpr int kLabel = 8;

size_t most_apart(const NumberLists& models) {
  size_t best = 0;
  double most = -1;
  for (size_t i = 0; i < models[0].size(); ++i) {
    double low = models[0][i], high = low;
    for (const auto& model : models) {
      low = std::min(low, model[i]);
      high = std::max(high, model[i]);
    }
    if (high - low > most) {
      most = high - low;
      best = i;
    }
  }
  return best;
}

// A line on which values have their places; what is outside stands at its ends as < or >.
class Axis1D {
 public:
  Axis1D(int columns, double low, double high) : columns_(columns), low_(low), high_(high) {}

  std::string draw(double outer, const std::vector<double>& own) const {
    std::vector<std::string> cells(static_cast<size_t>(columns_), "·");
    put(cells, outer, "o");
    for (size_t rank = 0; rank < own.size(); ++rank) put(cells, own[rank], std::to_string(rank));
    std::string text;
    for (const std::string& cell : cells) text += cell;
    return text;
  }

 private:
  void put(std::vector<std::string>& cells, double value, const std::string& glyph) const {
    const double share = (value - low_) / (high_ - low_);
    if (!(share >= 0)) {  // also a NaN
      cells.front() = std::isnan(share) ? "?" : "<";
    } else if (share > 1) {
      cells.back() = ">";
    } else {
      std::string& cell = cells[static_cast<size_t>(std::lround(share * (columns_ - 1)))];
      cell = cell == "·" ? glyph : "*";
    }
  }

  int columns_;
  double low_, high_;
};

std::vector<double> of_weight(const NumberLists& models, size_t weight) {
  std::vector<double> values;
  for (const auto& model : models) values.push_back(model[weight]);
  return values;
}

}  // namespace

void draw_one_weight(Screen& screen, const RareRun& right, const RareRun& yours) {
  const size_t weight = most_apart(right.first.before);
  const double start = right.start[weight];
  const std::vector<double> before = of_weight(right.first.before, weight);
  const auto [low, high] = std::ranges::minmax(before);
  const double after = right.first.outer[0][weight];
  const double from = std::min({low, start, after}), to = std::max({high, start, after}), margin = (to - from) / 8;
  const Axis1D axis(screen.width() - kLabel - 6, from - margin, to + margin);
  const auto show = [&](const char* label, double outer, const std::vector<double>& own) {
    screen.line("    " + padded(label, kLabel) + screen.paint(Ink::kGreen, axis.draw(outer, own)));
  };
  show("before", start, before);
  show("right", after, of_weight(right.first.own, weight));
  show("yours", yours.first.outer[0][weight], of_weight(yours.first.own, weight));
}

}  // namespace ranklab::lesson
