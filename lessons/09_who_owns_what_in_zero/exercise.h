// Lesson 9: parameters that exist in full only while they are used.
#pragma once
#include <vector>

#include "../lesson_api.h"

namespace ranklab::lesson {

// What one rank keeps of a layer. All ranks keep equally many elements; if the layer does not divide evenly, the last
// ranks' shards are padded with zeros.
struct Shard {
  size_t elements = 0;             // of the full layer
  std::vector<double> parameters;  // this rank's shard
  std::vector<double> gradients;   // of the same elements, summed over all ranks
};

}  // namespace ranklab::lesson

// At the start every rank has the full layer: keep only rank `rank`'s shard of `size`, in mine.parameters.
extern "C" void shard(int rank, int size, std::span<const double> whole, ranklab::lesson::Shard& mine);
// Before a use: the full layer (mine.elements values) from all ranks' shards.
extern "C" void gather(ranklab::lesson::Comm& dp, const ranklab::lesson::Shard& mine, std::vector<double>& whole);
// After it: `whole` must hold no memory.
extern "C" void release(std::vector<double>& whole);
// A layer's gradient on this rank's samples (mine.elements values): the sum over all ranks, for this rank's shard only.
extern "C" void reduce(ranklab::lesson::Comm& dp, std::span<const double> gradient, ranklab::lesson::Shard& mine);
