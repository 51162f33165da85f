// Blends several data sets by weights: determines from which set sequence n of the training is taken, and which of that
// set's sequences it is. After n sequences, each set has provided weight x n of them, to within one: Tijdeman, "The
// chairman assignment problem" (Discrete Mathematics 32, 1980), chooses, among the sets that are behind, the one that
// must come soonest. Megatron-LM's blends choose the one furthest behind, which with three or more sets lets others
// fall behind by nearly two. This is a pure function of weights and n, so every layout gets the same sequences, and a
// resumed run continues from its number of sequences. Cost: when n is first requested, nanoseconds per set for each
// sequence before n (half a minute for a billion sequences of four sets); after that at most kBlock sequences.
// Torch-free. Thread rule: shared by all ranks.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace ranklab {

class DataBlend {
 public:
  // `weights` as given by the user; shares are weight / sum. Throws kInvalidArgument if one of them or their sum is not
  // positive and finite.
  explicit DataBlend(std::vector<double> weights);

  struct Place {
    size_t set = 0;
    int64_t index = 0;  // index among the set's sequences, in the order in which the set provides them
  };
  std::vector<Place> places(int64_t begin, int64_t count) const;
  std::vector<int64_t> counts_before(int64_t position) const;  // number of sequences of each set
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
  std::vector<std::shared_ptr<const TokenDataset>> sets;  // all with the same sequence length
  std::shared_ptr<const DataBlend> blend;
};

}  // namespace ranklab
