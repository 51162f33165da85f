#include "core/pipeline/balanced_split.h"

#include <algorithm>

#include "core/base/even_parts.h"

namespace ranklab {
namespace {

class Splitter {
 public:
  // The first layer always belongs to the first stage and the last to the last one, so the work before and after the
  // layers is added to these two layers.
  Splitter(std::span<const double> layers, const EndWork& ends, int64_t stages)
      : layers_(layers.size()), stages_(static_cast<size_t>(stages)), before_(layers.size() + 1, 0.0) {
    for (size_t i = 0; i < layers.size(); ++i) before_[i + 1] = before_[i] + layers[i] + (i == 0 ? ends.ahead : 0);
    before_.back() += ends.behind;
  }

  // `bound`: the work of the fullest stage in some known split.
  std::vector<int64_t> split(double bound) const {
    const double most = least_fullest(bound) * (1 + 1e-9);
    const std::vector<size_t> earliest = earliest_begins(most);
    std::vector<int64_t> out;
    size_t from = 0;
    for (size_t stage = 1; stage < stages_; ++stage) {
      // Where this stage would begin if layers could be divided.
      const double share = static_cast<double>(stage) / static_cast<double>(stages_);
      const size_t ideal = reach(0, before_[layers_] * share * (1 + 1e-12));
      const size_t last = std::min(reach(from, most), layers_ - (stages_ - stage));
      const size_t to = std::clamp(ideal, std::min(std::max(earliest[stage], from + 1), last), last);
      out.push_back(static_cast<int64_t>(to - from));
      from = to;
    }
    out.push_back(static_cast<int64_t>(layers_ - from));
    return out;
  }

 private:
  // The end of the longest run of layers from `from` on with at most this much work.
  size_t reach(size_t from, double work) const {
    const auto begin = before_.begin() + static_cast<std::ptrdiff_t>(from);
    return static_cast<size_t>(std::upper_bound(begin, before_.end(), before_[from] + work) - before_.begin()) - 1;
  }

  // Whether the layers fit with at most this much work per stage: each stage takes as many layers as it can while
  // leaving one to each stage after it.
  bool fits(double most) const {
    size_t from = 0;
    for (size_t stage = 1; stage < stages_; ++stage) {
      const size_t to = std::min(reach(from, most), layers_ - (stages_ - stage));
      if (to == from) return false;
      from = to;
    }
    return before_[layers_] - before_[from] <= most;
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
      const auto first = std::lower_bound(before_.begin(), end, before_[to] - most);
      to = std::max(static_cast<size_t>(first - before_.begin()), stage);
      begins[stage] = to;
    }
    return begins;
  }

  size_t layers_, stages_;
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
