// A file that is read whole (settings, an index): never more than a limit, so that a wrong path such as a device or a
// dataset ends in an error and not in all of memory. Thread rule: pure.
#pragma once
#include <cstddef>
#include <string>

#include "core/base/error.h"

namespace ranklab {

// Throws `kind` naming `where` and the path: it does not exist, is a folder, cannot be read, or has over limit_bytes.
std::string read_small_file(const std::string& path, size_t limit_bytes, ErrorKind kind, const std::string& where,
                            const std::string& fix);

}  // namespace ranklab
