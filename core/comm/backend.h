// A backend in one row: its name, what its worlds can do, what is usual there. Core declares the list and asks it for
// capabilities; which backends there are is written in backends/backend_list.cpp, each row in its backend's folder.
// Torch-free. Thread rule: immutable.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "core/comm/capability.h"

namespace ranklab {

struct Backend {
  const char* name;            // of --backend
  const char* help;            // where its ranks live, in a line
  Capabilities on_host;        // with tensors in the host's memory; none: they cannot be there
  Capabilities on_gpu;         // with tensors in a GPU's memory; none: they cannot be there
  int64_t usual_bucket_bytes;  // of gradients
};

// The first is the usual one. Defined in backends/backend_list.cpp.
std::span<const Backend> backends();

// Throws kInvalidArgument with the names there are.
const Backend& find_backend(const std::string& name);

}  // namespace ranklab
