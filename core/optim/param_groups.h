// Splits parameters into those with and without weight decay, as parallel lists that ATen's fused updates take.
// Internal to core/optim. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "core/base/error.h"
#include "core/nn/parameter.h"

namespace ranklab {

struct ParamGroup {
  bool decay = true;
  std::vector<Parameter*> parameters;

  std::vector<at::Tensor> data() const {
    std::vector<at::Tensor> result;
    for (const Parameter* parameter : parameters) result.push_back(parameter->data);
    return result;
  }
  std::vector<at::Tensor> grads() const {
    std::vector<at::Tensor> result;
    for (const Parameter* parameter : parameters) {
      RANKLAB_CHECK(parameter->data.grad().defined(), ErrorKind::kInternal, .where = "Optimizer::step",
                    .what = "a parameter has no gradient", .got = parameter->name,
                    .fix = "call GradReducer::finish() before the optimizer");
      result.push_back(parameter->data.grad());
    }
    return result;
  }
  void clear_grads() const {
    for (Parameter* parameter : parameters) parameter->data.mutable_grad().reset();
  }
};

inline std::array<ParamGroup, 2> group_by_decay(const std::vector<Parameter*>& parameters) {
  std::array<ParamGroup, 2> groups{ParamGroup{true, {}}, ParamGroup{false, {}}};
  for (Parameter* parameter : parameters) groups[parameter->weight_decay ? 0 : 1].parameters.push_back(parameter);
  return groups;
}

}  // namespace ranklab
