// Lists of fp64 numbers, compared. The lists of one call are equally long. A NaN makes the result NaN. Thread rule:
// pure.
#pragma once
#include <span>
#include <vector>

namespace ranklab::lesson {

using NumberLists = std::vector<std::vector<double>>;

// The number of lists that differ from each other, in any bit.
int different(const NumberLists& lists);
// The largest difference of any list from the first.
double spread(const NumberLists& lists);
// The largest difference of any list from `want`, as a share of the largest number of `want`.
double relative_error(const NumberLists& got, std::span<const double> want);

}  // namespace ranklab::lesson
