// Training software whose kernels are not this project's: with `--efficiency measured`, by how much longer than here
// its kernels and collectives take (`--software`). Fitted to published runs of that software, none to a model or a
// paper (docs/planner.md). Thread rule: plain data.
#pragma once
#include <array>
#include <span>
#include <string>

#include "core/sim/kernel_shape.h"

namespace ranklab {

struct Software {
  const char* name = "ranklab";
  const char* what = "this project's kernels: norms, rotation, activations and losses are fused";
  std::array<double, KernelShape::kKinds> kernels = {1, 1, 1, 1, 1};  // by KernelShape::Kind
  double collectives = 1;
};

std::span<const Software> software_rows();
// Throws kInvalidArgument with the nearest name.
const Software& software_named(const std::string& name);

}  // namespace ranklab
