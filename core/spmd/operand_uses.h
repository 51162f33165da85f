// What each ATen operator does with its operands' numbers, as the types see it (tensor_type.h). Torch-free. Thread
// rule: pure.
#pragma once
#include <string_view>

#include "core/spmd/tensor_type.h"

namespace ranklab {

struct OperatorRule {
  OperandUse use = OperandUse::kCarried;
  bool makes_constants = false;  // whatever its operands hold: empty, zeros_like
  bool in_place = false;         // the first operand receives the result ...
  bool reads_first = true;       // ... and is an operand itself
};

// `name`: "aten::add_"; `overload`: "out" where the last arguments receive the result.
OperatorRule operator_rule(std::string_view name, std::string_view overload);

}  // namespace ranklab
