// What a model consists of: its parameters by module, the same in every layer, with what tensor parallelism does to
// them. The names are those of the registry (core/nn/parameter.h), "*" for the layer. Torch-free. Cost: nothing. Thread
// rule: pure.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/model/model_config.h"

namespace ranklab {

enum class ModuleSplit { kReplicated, kVocabulary, kColumn, kRow };
const char* name(ModuleSplit split);  // "vocabulary", "out features", ...

struct ModuleRow {
  std::string parameter;       // "layers.*.attention.qkv.weight"
  std::vector<int64_t> shape;  // of the whole model, padding not counted
  int64_t copies = 1;          // layers that have one
  ModuleSplit split = ModuleSplit::kReplicated;
  bool multiplies = false;  // tokens are multiplied with it: 2 FLOPs an element and token forward
  bool tied = false;        // the matrix is another row's, which counts it

  int64_t elements() const;  // of one copy
  int64_t parameters() const { return tied ? 0 : copies * elements(); }
  double forward_flops_per_token() const {
    return multiplies ? 2.0 * static_cast<double>(copies) * static_cast<double>(elements()) : 0;
  }
};

// In the order of the forward pass.
std::vector<ModuleRow> module_table(const ModelConfig& config);

}  // namespace ranklab
