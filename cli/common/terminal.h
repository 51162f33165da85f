// Whether text written here appears on a terminal. mpirun gives every rank a terminal of its own, even if the output is
// redirected, so in that case the launcher's output is checked, too. Linux (/proc). Thread rule: pure.
#pragma once

namespace ranklab {

bool on_terminal(int descriptor);

}  // namespace ranklab
