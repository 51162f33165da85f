// The device that --device selects for a benchmark. Thread rule: main thread, before ranks start.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>

namespace ranklab {

// `name`: auto (a GPU if there is one), cpu or cuda. Throws kEnvironment if a GPU is requested and there is none.
at::Device bench_device(const std::string& name, const std::string& where);

}  // namespace ranklab
