// What is wrong with a shared library or with one that it needs, as far as the files tell. The loader reports a library
// that may not be read as one that is not there, and a process that has mapped a file which is cut off is killed by
// SIGBUS. Looks where the loader looks for LibTorch: LD_LIBRARY_PATH and the run paths of the libraries themselves; not
// the system's folders. Cost: a few reads per library. Thread rule: pure.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "core/base/error.h"

namespace ranklab {

struct LibraryFaults {
  std::optional<Error> cut = {};  // loading it would kill the process
  // What may not be read, by file name; the loader may find another copy elsewhere.
  std::map<std::string, Error> hidden = {};
};

// Errors are kEnvironment, from `where`.
LibraryFaults library_faults(const std::string& path, const std::string& where);

}  // namespace ranklab
