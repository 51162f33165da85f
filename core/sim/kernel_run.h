// A kernel as the virtual clock sees it: one operator, or one CostScope (op_observer.h). Torch-free. Thread rule: plain
// data.
#pragma once
#include <cstdint>
#include <string>

#include "core/base/dtype.h"
#include "core/base/kernel_bound.h"

namespace ranklab {

// The name of a kernel on the timeline: "flash_attention", "gemm 4096x1024x512" (m, n, k).
struct KernelName {
  const char* what;
  double m = 0, n = 0, k = 0;  // of a product: [m, k] x [k, n]
  KernelName(const char* name) : what(name) {}
  KernelName(const char* name, double rows, double cols, double inner) : what(name), m(rows), n(cols), k(inner) {}
  std::string text() const;
};

// One charged op or CostScope. Times in ns of the virtual clock.
struct KernelRun {
  std::string name;
  double flops = 0, bytes = 0;
  DType dtype = DType::kFloat32;
  KernelBound bound = KernelBound::kMemory;
  int64_t begin_ns = 0, end_ns = 0;
};

}  // namespace ranklab
