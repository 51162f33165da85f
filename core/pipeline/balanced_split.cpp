#include "core/pipeline/balanced_split.h"

#include <algorithm>

#include "core/base/even_parts.h"

namespace ranklab {
namespace {

class Splitter {
 public:
  // The first layer always belongs to the first stage, so the work before the layers is added to it.
  Splitter(std::span<const double> layers, const EndWork& ends, int64_t stages)
      : layers_(layers.size()),
        stages_(static_cast<size_t>(stages)),
        least_in_last_(ends.behind > 0 ? 0 : 1),
        behind_(ends.behind),
        before_(layers.size() + 1, 0.0) {
    for (size_t i = 0; i < layers.size(); ++i) before_[i + 1] = before_[i] + layers[i] + (i == 0 ? ends.ahead : 0);
  }

  // `bound`: the work of the fullest stage in some known split.
  std::vector<int64_t> split(double bound) const {
    const double most = least_fullest(bound) * (1 + 1e-9);
    const std::vector<size_t> earliest = earliest_begins(most);
    std::vector<int64_t> out;
    size_t from = 0;
    for (size_t stage = 1; stage < stages_; ++stage) {
      const size_t ideal = reach(0, even_share(stage) * (1 + 1e-12));
      const size_t last = std::min(reach(from, most), last_begin(stage));
      const size_t to = std::clamp(ideal, std::min(std::max(earliest[stage], from + 1), last), last);
      out.push_back(static_cast<int64_t>(to - from));
      from = to;
    }
    out.push_back(static_cast<int64_t>(layers_ - from));
    return out;
  }

 private:
  // The work before this stage if layers could be divided. If what is behind the layers is more than a share, the other
  // stages divide the layers among themselves.
  double even_share(size_t stage) const {
    const double before = static_cast<double>(stage), stages = static_cast<double>(stages_), all = before_[layers_];
    const double share = (all + behind_) / stages;
    return behind_ > share ? all * before / (stages - 1) : share * before;
  }

  // The last layer with which a stage may begin, which leaves enough to it and the stages after it.
  size_t last_begin(size_t stage) const { return layers_ - (stages_ - 1 - stage) - least_in_last_; }

  // The end of the longest run of layers from `from` on with at most this much work.
  size_t reach(size_t from, double work) const {
    const auto begin = before_.begin() + static_cast<std::ptrdiff_t>(from);
    return static_cast<size_t>(std::upper_bound(begin, before_.end(), before_[from] + work) - before_.begin()) - 1;
  }

  // Whether the layers fit with at most this much work per stage: each stage takes as many layers as it can while
  // leaving enough to those after it.
  bool fits(double most) const {
    size_t from = 0;
    for (size_t stage = 1; stage < stages_; ++stage) {
      const size_t to = std::min(reach(from, most), last_begin(stage));
      if (to == from) return false;
      from = to;
    }
    return before_[layers_] - before_[from] + behind_ <= most;
  }

  double least_fullest(double bound) const {
    constexpr int kHalvings = 60;  // enough to determine a double to about its last bit
    double low = 0;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = (low + bound) / 2;
      (fits(middle) ? bound : low) = middle;
    }
    return bound;
  }

  // The first layer with which each stage may begin so that neither it nor any later stage has more work than this.
  std::vector<size_t> earliest_begins(double most) const {
    std::vector<size_t> begins(stages_, 0);
    size_t to = layers_;
    for (size_t stage = stages_; stage-- > 1;) {
      const auto end = before_.begin() + static_cast<std::ptrdiff_t>(to);
      const double own = stage + 1 == stages_ ? behind_ : 0;
      const auto first = std::lower_bound(before_.begin(), end, before_[to] + own - most);
      to = std::max(static_cast<size_t>(first - before_.begin()), stage);
      begins[stage] = to;
    }
    return begins;
  }

  size_t layers_, stages_, least_in_last_;
  double behind_;
  std::vector<double> before_;  // [i]: work of the layers before layer i
};

}  // namespace

std::vector<int64_t> balanced_split(std::span<const double> layers, const EndWork& ends, int64_t stages) {
  const std::vector<int64_t> even = even_parts(static_cast<int64_t>(layers.size()), stages);
  return Splitter(layers, ends, stages).split(fullest_stage(layers, ends, even));
}

double fullest_stage(std::span<const double> layers, const EndWork& ends, std::span<const int64_t> split) {
  double most = 0;
  size_t layer = 0;
  for (size_t stage = 0; stage < split.size(); ++stage) {
    double work = (stage == 0 ? ends.ahead : 0) + (stage + 1 == split.size() ? ends.behind : 0);
    for (int64_t i = 0; i < split[stage]; ++i) work += layers[layer++];
    most = std::max(most, work);
  }
  return most;
}

}  // namespace ranklab
