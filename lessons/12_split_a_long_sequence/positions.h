// Which positions of a sequence each rank has, as a learner may choose them: core/spec/sequence_part.h knows runs
// alone. Thread rule: pure.
#pragma once
#include <cstddef>
#include <vector>

namespace ranklab::lesson {

using Positions = std::vector<std::vector<size_t>>;  // of each rank
Positions contiguous(int ranks, size_t each);
Positions zigzag(int ranks, size_t each);
// How many positions exactly one rank has.
size_t held_once(const Positions& positions);
// Causal work: pairs of a query of a rank and a key that it attends to, the most over the mean.
double work_max_over_mean(const Positions& positions);

}  // namespace ranklab::lesson
