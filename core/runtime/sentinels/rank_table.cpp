#include "core/runtime/sentinels/rank_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();

}  // namespace

size_t RankTable::reserve(size_t count) {
  const size_t first = mine_.size();
  mine_.resize(first + count, kUnset);
  return first;
}

void RankTable::clear() { std::fill(mine_.begin(), mine_.end(), kUnset); }

void RankTable::exchange(Communicator& world, c10::Device device) {
  const NoCostScope free;
  ranks_ = world.size();
  const at::Tensor row = at::empty({1, static_cast<int64_t>(mine_.size())}, at::kDouble);
  std::copy(mine_.begin(), mine_.end(), row.mutable_data_ptr<double>());
  const at::Tensor all = world.all_gather(row.to(device)).to(at::kCPU);
  const double* first = all.const_data_ptr<double>();
  all_.assign(first, first + all.numel());
}

template <typename Take>
double RankTable::over_ranks(size_t slot, const Take& take) const {
  double result = kUnset;
  for (int rank = 0; rank < ranks_; ++rank) {
    const double value = of(rank, slot);
    if (!std::isnan(value)) result = std::isnan(result) ? value : take(result, value);
  }
  return result;
}

double RankTable::sum(size_t slot) const {
  return over_ranks(slot, [](double a, double b) { return a + b; });
}
double RankTable::most(size_t slot) const {
  return over_ranks(slot, [](double a, double b) { return std::max(a, b); });
}
double RankTable::least(size_t slot) const {
  return over_ranks(slot, [](double a, double b) { return std::min(a, b); });
}

}  // namespace ranklab
