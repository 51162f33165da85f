// A backend as one table row: its name, what its worlds can do, its defaults. Core declares the list and queries it for
// capabilities; the list itself is in backends/backend_list.cpp, each row in its backend's folder.
// Torch-free. Thread rule: immutable.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "core/comm/capability.h"

namespace ranklab {

struct Backend {
  const char* name;            // value of --backend
  const char* help;            // where its ranks live, in one line
  Capabilities on_host;        // with tensors in host memory; none: not supported
  Capabilities on_gpu;         // with tensors in GPU memory; none: not supported
  int64_t usual_bucket_bytes;  // default size of a gradient bucket
};

// The first is the default. Defined in backends/backend_list.cpp.
std::span<const Backend> backends();

// Throws kInvalidArgument, listing the names that exist.
const Backend& find_backend(const std::string& name);

}  // namespace ranklab
