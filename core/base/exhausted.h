// Memory and threads that the system refuses: an error of the environment, however it was thrown. Cost: an error reads
// one file of /proc. Thread rule: any thread.
#pragma once
#include <cstddef>
#include <exception>
#include <optional>

#include "core/base/error.h"

namespace ranklab {

// kEnvironment with the limit that was met: of the shell (ulimit -v), else what the machine has left. `asked_bytes` 0:
// not known.
Error memory_exhausted(size_t asked_bytes = 0);

// kEnvironment. `got`: what the system said.
Error threads_exhausted(const char* got);

// Where exceptions become errors of a rank or of the program: what `thrown` says of memory or threads (std::bad_alloc,
// a thread that could not be started, an Error of the environment itself); nothing when it is of something else.
std::optional<Error> as_exhausted(const std::exception& thrown);

}  // namespace ranklab
