// Whether the text written here appears on a terminal. mpirun gives every rank a terminal of its own, whatever happens
// to its output, so there the launcher's output is checked, too. Linux (/proc). Thread rule: pure.
#pragma once

namespace ranklab {

bool on_terminal(int descriptor);

}  // namespace ranklab
