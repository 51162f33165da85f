// Which positions of a sequence each rank has, in the general form that a learner may choose; core/spec/sequence_part.h
// only supports runs of positions. Thread rule: pure.
#pragma once
#include <cstddef>
#include <vector>

namespace ranklab::lesson {

using Positions = std::vector<std::vector<size_t>>;  // per rank
Positions contiguous(int ranks, size_t each);
Positions zigzag(int ranks, size_t each);
// The number of positions that exactly one rank has.
size_t held_once(const Positions& positions);
// The causal work of the rank with the most work, divided by the mean; counted in pairs of a query and a key that it
// attends to.
double work_max_over_mean(const Positions& positions);

}  // namespace ranklab::lesson
