#include "core/data/data_blend.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {

DataBlend::DataBlend(std::vector<double> weights) : shares_(std::move(weights)) {
  const double sum = std::accumulate(shares_.begin(), shares_.end(), 0.0);
  for (const double weight : shares_)
    RANKLAB_CHECK(weight > 0 && std::isfinite(sum), ErrorKind::kInvalidArgument, .where = "data",
                  .what = "the weight of a data set is not positive, or the sum of the weights is not finite",
                  .got = strprintf("%g", weight), .want = "a number above 0", .fix = "leave the data set out");
  for (double& share : shares_) share /= sum;
  const auto sets = static_cast<double>(shares_.size());
  fallen_behind_ = shares_.size() > 1 ? 1 / (2 * sets - 2) : 0;
  blocks_.emplace_back(shares_.size(), 0);
}

size_t DataBlend::next(const std::vector<int64_t>& counts, int64_t position) const {
  constexpr double kRounding = 1e-9;  // a set exactly at the bound counts as behind
  size_t soonest = 0, furthest = 0;
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (size_t set = 0; set < counts.size(); ++set) {
    const double behind = shares_[set] * static_cast<double>(position + 1) - static_cast<double>(counts[set]);
    if (behind > most) {
      most = behind;
      furthest = set;
    }
    const double until =
        (1 - fallen_behind_ - behind) / shares_[set];  // number of sequences until it is too far behind
    if (behind >= fallen_behind_ - kRounding && until < least) {
      least = until;
      soonest = set;
    }
  }
  // In exact arithmetic some set is behind; rounding may hide that if shares differ by more than 64 bits can represent.
  return std::isfinite(least) ? soonest : furthest;
}

std::vector<int64_t> DataBlend::counts_before(int64_t position) const {
  constexpr int64_t kMost = int64_t{1} << 32;  // two minutes, and about 300 MB with four sets
  RANKLAB_CHECK(position >= 0 && position <= kMost, ErrorKind::kInvalidArgument, .where = "data",
                .what = "too many sequences before this one for a blend", .got = std::to_string(position),
                .want = "at most 2^32", .fix = "ask for an earlier step");
  const auto block = static_cast<size_t>(position / kBlock);
  std::vector<int64_t> counts;
  {
    const std::lock_guard lock(mutex_);
    while (blocks_.size() <= block) {
      counts = blocks_.back();
      const int64_t begin = static_cast<int64_t>(blocks_.size() - 1) * kBlock;
      for (int64_t at = begin; at < begin + kBlock; ++at) ++counts[next(counts, at)];
      blocks_.push_back(counts);
    }
    counts = blocks_[block];
  }
  for (int64_t at = static_cast<int64_t>(block) * kBlock; at < position; ++at) ++counts[next(counts, at)];
  return counts;
}

std::vector<DataBlend::Place> DataBlend::places(int64_t begin, int64_t count) const {
  std::vector<Place> places;
  if (shares_.size() == 1) {
    for (int64_t at = begin; at < begin + count; ++at) places.push_back({0, at});
    return places;
  }
  std::vector<int64_t> counts = counts_before(begin);
  for (int64_t at = begin; at < begin + count; ++at) {
    const size_t set = next(counts, at);
    places.push_back({set, counts[set]++});
  }
  return places;
}

}  // namespace ranklab
