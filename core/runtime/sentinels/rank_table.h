// A row of numbers for every rank, which all ranks know after one exchange. Sums are computed in rank order, so that
// all ranks get the same bits. Whole numbers are exact below 2^53. Cost: one all_gather of the rows, which is not part
// of the timeline. Thread rule: its rank's thread; exchange() is collective over all ranks, which must reserve the same
// slots.
#pragma once
#include <cstddef>
#include <vector>

#include "core/comm/communicator.h"

namespace ranklab {

class RankTable {
 public:
  // RETURNS the first of `count` new slots.
  size_t reserve(size_t count = 1);
  void clear();  // marks all slots of this rank as not measured
  // A slot of this rank. If it is not set, it is NaN, which means not measured.
  double& mine(size_t slot) { return mine_[slot]; }
  void exchange(Communicator& world, c10::Device device);

  int ranks() const { return ranks_; }
  double of(int rank, size_t slot) const { return all_[static_cast<size_t>(rank) * mine_.size() + slot]; }
  // Over the ranks that measured it; NaN if none did.
  double sum(size_t slot) const;
  double most(size_t slot) const;
  double least(size_t slot) const;

 private:
  template <typename Take>
  double over_ranks(size_t slot, const Take& take) const;
  std::vector<double> mine_, all_;
  int ranks_ = 0;
};

}  // namespace ranklab
