// The modules of a model as a precision policy knows them, by the names of their parameters without ".weight". Torch-
// free. Thread rule: pure.
#pragma once
#include <vector>

#include "core/precision/precision_policy.h"
#include "core/spec/model_config.h"
#include "core/spec/module_table.h"

namespace ranklab {

// Of every layer and every expert, in the order of the forward pass; norms, embeddings and routers among them as
// modules without products. Throws kInvalidArgument for a model of millions of modules.
std::vector<PolicyModule> linear_modules(const ModelConfig& config);

// Those of one row of the model's table; none of a row without a weight of its own.
std::vector<PolicyModule> modules_of(const ModuleRow& row);

}  // namespace ranklab
