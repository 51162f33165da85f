// Turns running out of memory or threads into an environment error, however the failure was thrown. Cost: making the
// error reads one file of /proc. Thread rule: any thread.
#pragma once
#include <cstddef>
#include <exception>
#include <optional>

#include "core/base/error.h"

namespace ranklab {

// A kEnvironment error that names the limit that was reached: the shell's (ulimit -v) or else the memory left on the
// machine. `requested_bytes` 0 means unknown.
Error memory_exhausted(size_t requested_bytes = 0);

// A kEnvironment error. `got` is what the system reported.
Error threads_exhausted(const char* got);

// For places where exceptions become errors. RETURNS: the error when `thrown` means that memory or threads ran out
// (std::bad_alloc, a thread that could not be started, any kEnvironment Error), else nothing.
std::optional<Error> as_exhausted(const std::exception& thrown);

}  // namespace ranklab
