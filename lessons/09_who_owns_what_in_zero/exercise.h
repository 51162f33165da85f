// Lesson 9: parameters that are there only while they are used.
#pragma once
#include <vector>

#include "../lesson_api.h"

namespace ranklab::lesson {

// What one rank keeps of a layer. All ranks keep equally many numbers; where the layer does not divide, the last ranks'
// parts are filled up with zeros.
struct Shard {
  size_t elements = 0;             // of the whole layer
  std::vector<double> parameters;  // this rank's part
  std::vector<double> gradients;   // of the same elements, summed over all ranks
};

}  // namespace ranklab::lesson

// At the start every rank has the whole layer: keep only rank `rank`'s part of `size`, in mine.parameters.
extern "C" void shard(int rank, int size, std::span<const double> whole, ranklab::lesson::Shard& mine);
// Before a use: the whole layer (mine.elements numbers) from everybody's parts.
extern "C" void gather(ranklab::lesson::Comm& dp, const ranklab::lesson::Shard& mine, std::vector<double>& whole);
// After it: `whole` holds no memory any more.
extern "C" void release(std::vector<double>& whole);
// A layer's gradient on this rank's samples (mine.elements numbers): the sum over all ranks, of this rank's part only.
extern "C" void reduce(ranklab::lesson::Comm& dp, std::span<const double> gradient, ranklab::lesson::Shard& mine);
