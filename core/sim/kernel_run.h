// A kernel as the virtual clock sees it: one operator, or one CostScope (op_observer.h). Torch-free. Thread rule: plain
// data.
#pragma once
#include <cstdint>
#include <string>

#include "core/base/dtype.h"
#include "core/base/kernel_bound.h"
#include "core/sim/kernel_shape.h"

namespace ranklab {

// The name of a kernel on the timeline: "flash_attention", "gemm 4096x1024x512" (m, n, k).
struct KernelName {
  const char* what = "";
  KernelShape shape = {};
  KernelName(const char* name) : what(name) {}
  KernelName(const char* name, const KernelShape& of) : what(name), shape(of) {}
  KernelName(const char* name, double rows, double cols, double inner)
      : what(name), shape(KernelShape::product(rows, cols, inner)) {}
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
