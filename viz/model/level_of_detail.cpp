#include "viz/model/level_of_detail.h"

#include <algorithm>
#include <array>

namespace ranklab::viz {
namespace {

// The paint that covers most of slices [first, last): complete strides are read from their sums, the slices at both
// ends are added one by one.
Paint dominant(const Track& track, size_t first, size_t last) {
  std::array<int64_t, kPaints> time{};
  size_t i = first;
  const auto one = [&](size_t at) {
    time[static_cast<size_t>(track.paint[at])] += track.end_ns[at] - track.begin_ns[at] + 1;
  };
  for (; i < last && i % Track::kStride != 0; ++i) one(i);
  const size_t from = i / Track::kStride, to = last / Track::kStride;
  if (to > from) {
    for (size_t p = 0; p < kPaints; ++p) time[p] += track.painted_ns[to][p] - track.painted_ns[from][p];
    i = to * Track::kStride;
  }
  for (; i < last; ++i) one(i);
  return static_cast<Paint>(std::max_element(time.begin(), time.end()) - time.begin());
}

// The first element of `sorted` from `first` on that is not below `bound`. It is usually near, so an exponential search
// finds it faster than bisecting the rest.
size_t first_at(const std::vector<int64_t>& sorted, size_t first, int64_t bound) {
  size_t low = first, stride = 1;
  while (low + stride < sorted.size() && sorted[low + stride] < bound) {
    low += stride;
    stride *= 2;
  }
  const auto begin = sorted.begin() + static_cast<std::ptrdiff_t>(low);
  const auto end = sorted.begin() + static_cast<std::ptrdiff_t>(std::min(low + stride, sorted.size()));
  return static_cast<size_t>(std::lower_bound(begin, end, bound) - sorted.begin());
}

class Drawer {
 public:
  Drawer(TimeRange window, float width, float least, std::vector<LodBlock>& out)
      : begin_(window.begin_ns),
        end_(window.end_ns),
        per_ns_(static_cast<double>(width) / static_cast<double>(window.length_ns())),
        width_(width),
        least_(std::max(least, 0.01F)),
        out_(out) {}

  void draw(const Track& track, uint8_t depth) {
    size_t i = track.first_ending_after(begin_);
    while (i < track.size() && track.begin_ns[i] < end_) {
      const double x0 = x(track.begin_ns[i]), x1 = x(track.end_ns[i]);
      if (x1 - x0 >= least_) {
        push(x0, x1, {.event = track.event[i], .count = 1, .paint = track.paint[i], .depth = depth});
        ++i;
        continue;
      }
      i = run(track, i, x0, depth);
    }
  }

 private:
  double x(int64_t time) const { return static_cast<double>(time - begin_) * per_ns_; }

  // Merges slices that begin within `least` pixels of the first one, up to one that is wide enough by itself.
  size_t run(const Track& track, size_t first, double x0, uint8_t depth) {
    const double limit = static_cast<double>(begin_) + (x0 + least_) / per_ns_;
    const auto bound = static_cast<int64_t>(std::min(limit, static_cast<double>(end_)));
    size_t last = std::max(first_at(track.begin_ns, first, bound), first + 1);
    // Slices are disjoint, so only the last of them can be wide.
    if (last > first + 1 && x(track.end_ns[last - 1]) - x(track.begin_ns[last - 1]) >= least_) --last;
    const auto count = static_cast<uint32_t>(last - first);
    push(x0, x(track.end_ns[last - 1]),
         {.event = track.event[first],
          .count = count,
          .paint = count == 1 ? track.paint[first] : dominant(track, first, last),
          .depth = depth});
    return last;
  }

  void push(double x0, double x1, LodBlock block) {
    block.x0 = static_cast<float>(std::max(x0, 0.0));
    block.x1 = std::min(width_, static_cast<float>(x1));
    out_.push_back(block);
  }

  int64_t begin_, end_;
  double per_ns_;
  float width_, least_;
  std::vector<LodBlock>& out_;
};

}  // namespace

void level_of_detail(const Row& row, TimeRange window, float width_pixels, std::vector<LodBlock>& out,
                     float least_pixels, size_t tracks) {
  if (window.empty() || !(width_pixels > 0)) return;
  Drawer drawer(window, width_pixels, least_pixels, out);
  for (size_t depth = 0; depth < std::min(tracks, row.tracks.size()); ++depth)
    drawer.draw(row.tracks[depth], static_cast<uint8_t>(std::min<size_t>(depth, 255)));
}

}  // namespace ranklab::viz
