// The device that a bench is asked for by --device. Thread rule: main thread, before ranks start.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>

namespace ranklab {

// `name`: auto (a GPU if there is one), cpu or cuda. Throws kEnvironment without a GPU that is asked for.
at::Device bench_device(const std::string& name, const std::string& where);

}  // namespace ranklab
