#include "lessons/12_split_a_long_sequence/positions.h"

#include <algorithm>
#include <numeric>

namespace ranklab::lesson {

Positions contiguous(int ranks, size_t each) {
  Positions positions(static_cast<size_t>(ranks), std::vector<size_t>(each));
  for (size_t rank = 0; rank < positions.size(); ++rank)
    std::iota(positions[rank].begin(), positions[rank].end(), rank * each);
  return positions;
}

Positions zigzag(int ranks, size_t each) {
  Positions positions(static_cast<size_t>(ranks), std::vector<size_t>(each));
  for (size_t rank = 0; rank < positions.size(); ++rank) {
    const auto middle = positions[rank].begin() + static_cast<std::ptrdiff_t>(each / 2);
    std::iota(positions[rank].begin(), middle, rank * (each / 2));
    std::iota(middle, positions[rank].end(), (2 * positions.size() - 1 - rank) * (each / 2));
  }
  return positions;
}

size_t held_once(const Positions& positions) {
  std::vector<size_t> all;
  for (const auto& of_rank : positions) all.insert(all.end(), of_rank.begin(), of_rank.end());
  std::vector<int> holders(all.size());
  for (const size_t position : all) {
    if (position < holders.size()) ++holders[position];
  }
  return static_cast<size_t>(std::ranges::count(holders, 1));
}

double work_max_over_mean(const Positions& positions) {
  double most = 0, sum = 0;
  for (const auto& of_rank : positions) {
    double pairs = 0;
    for (const size_t position : of_rank) pairs += static_cast<double>(position) + 1;
    most = std::max(most, pairs);
    sum += pairs;
  }
  return most * static_cast<double>(positions.size()) / sum;
}

}  // namespace ranklab::lesson
