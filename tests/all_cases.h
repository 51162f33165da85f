// Whether a suite runs its whole product of cases: RANKLAB_ALL_CASES=1 requests it. Otherwise a suite leaves out cases
// that its other cases cover equally, and says why next to its list.
#pragma once
#include <cstdlib>

namespace ranklab {

inline bool all_cases() { return std::getenv("RANKLAB_ALL_CASES") != nullptr; }

}  // namespace ranklab
