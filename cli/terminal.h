// Whether text that is written here is seen on a terminal. mpirun gives every rank a terminal of its own, whatever
// becomes of its output, so there the launcher's output is looked at, too. Linux (/proc). Thread rule: pure.
#pragma once

namespace ranklab {

bool on_terminal(int descriptor);

}  // namespace ranklab
