// Whether a suite runs its whole product of cases: RANKLAB_ALL_CASES=1 asks for it. Without it a suite leaves out what
// its other cases hold equally, and says beside its list why.
#pragma once
#include <cstdlib>

namespace ranklab {

inline bool all_cases() { return std::getenv("RANKLAB_ALL_CASES") != nullptr; }

}  // namespace ranklab
