// The modules of a model as a precision policy sees them, named like their parameters without ".weight".
// Torch-free. Thread rule: pure.
#pragma once
#include <vector>

#include "core/precision/precision_policy.h"
#include "core/spec/model_config.h"
#include "core/spec/module_table.h"

namespace ranklab {

// The modules of every layer and every expert, in forward order. Norms, embeddings and routers are included, as modules
// without GEMMs. Throws kInvalidArgument for a model of millions of modules.
std::vector<PolicyModule> linear_modules(const ModelConfig& config);

// The modules of one row of the model's module table; empty for a row without its own weight.
std::vector<PolicyModule> modules_of(const ModuleRow& row);

}  // namespace ranklab
