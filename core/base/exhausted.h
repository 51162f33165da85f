// Memory and threads that the system refuses: an error of the environment, however it was thrown. Cost: an error reads
// one file of /proc. Thread rule: any thread.
#pragma once
#include <cstddef>
#include <exception>
#include <optional>

#include "core/base/error.h"

namespace ranklab {

// kEnvironment, naming the limit that was reached: the shell's (ulimit -v), else the memory the machine has left.
// `requested_bytes` 0: unknown.
Error memory_exhausted(size_t requested_bytes = 0);

// kEnvironment. `got`: what the system said.
Error threads_exhausted(const char* got);

// For places where exceptions become errors. RETURNS: the error when `thrown` means that memory or threads ran out
// (std::bad_alloc, a thread that could not be started, any kEnvironment Error), else nothing.
std::optional<Error> as_exhausted(const std::exception& thrown);

}  // namespace ranklab
