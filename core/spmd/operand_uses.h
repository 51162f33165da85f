// What each ATen operator does with the values of its operands, as the tensor types need it (tensor_type.h).
// Torch-free. Thread rule: pure.
#pragma once
#include <cstddef>
#include <string_view>

#include "core/spmd/tensor_type.h"

namespace ranklab {

struct OperatorRule {
  // One letter per argument; the last letter also applies to all further arguments. c carried, a added, f factor, n
  // nonlinear.
  std::string_view uses = "c";
  bool makes_constants = false;  // whatever its operands are: empty, zeros_like
  bool in_place = false;         // the first operand receives the result ...
  bool reads_first = true;       // ... and is an operand itself
  bool has_out = false;          // the last argument receives the result

  OperandUse use_of(size_t argument) const;
};

// `name`: "aten::add_"; `overload`: "out" where the last argument receives the result.
OperatorRule operator_rule(std::string_view name, std::string_view overload);

}  // namespace ranklab
