// Several data sets as one, by weights: which of them sequence n of the training is taken from, and which of its
// sequences that is. After n sequences each set has given weight x n of them, less than one more or fewer: Tijdeman,
// "The chairman assignment problem" (Discrete Mathematics 32, 1980), takes, of the sets that have fallen behind, the
// one which must come soonest. Megatron-LM's blends take the one furthest behind, which with three sets and more lets
// others fall behind by nearly two. A pure function of weights and n, so that every layout draws the same and a resumed
// run goes on from its number of sequences. Cost: nanoseconds a set for each sequence before n when n is first asked
// for (a billion sequences of four sets: half a minute), then at most kBlock sequences. Torch-free. Thread rule: shared
// by all ranks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ranklab {

class DataBlend {
 public:
  // As they are given: shares are weight / sum. Throws kInvalidArgument if one or their sum is not positive and finite.
  explicit DataBlend(std::vector<double> weights);

  struct Place {
    size_t set = 0;
    int64_t index = 0;  // of the set's sequences, in the order in which it gives them
  };
  std::vector<Place> places(int64_t begin, int64_t count) const;
  std::vector<int64_t> counts_before(int64_t position) const;  // sequences of each set
  const std::vector<double>& shares() const { return shares_; }

 private:
  static constexpr int64_t kBlock = 1024;
  size_t next(const std::vector<int64_t>& counts, int64_t position) const;
  std::vector<double> shares_;
  double fallen_behind_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<std::vector<int64_t>> blocks_;  // counts before sequence i x kBlock
};

class TokenDataset;
struct BlendedSets {
  std::vector<std::shared_ptr<const TokenDataset>> sets;  // of one sequence length
  std::shared_ptr<const DataBlend> blend;
};

}  // namespace ranklab
