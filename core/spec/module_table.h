// What a model consists of: its parameters by module, the same in every layer that has them, with how a layout splits
// them and which of them a token is computed with; and the sums of that. Made of the specs that the layers are made of
// (layer_specs.h). The names are those of the registry (core/nn/parameter.h), "*" for the layer (of "mtp" the module)
// and for the expert. Torch-free. Cost: nothing. Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/spec/model_config.h"
#include "core/spec/module_spec.h"

namespace ranklab {

struct ModuleRow {
  std::string parameter = {};       // "layers.*.attention.qkv.weight"
  std::vector<int64_t> shape = {};  // of the whole model, padding not counted
  std::vector<int64_t> parts = {};  // ModuleSpec::parts()
  ModulePart part = ModulePart::kEmbedding;
  int64_t first_layer = 0;       // the layers (of "mtp" the modules) that have it: this one ...
  int64_t layers = 1;            // ... and those behind it, so many together
  int64_t per_layer = 1;         // experts of a layer
  int64_t active_per_layer = 1;  // of them, those that see a token
  ModuleSplit split = ModuleSplit::kReplicated;
  bool multiplies = false;  // tokens are multiplied with it: 2 FLOPs an element and token forward
  bool is_gate = false;     // of tokens or experts: multiplied in fp32, whatever the precision
  bool by_heads = false;    // on every tp rank, each of which uses it for its own heads alone
  bool tied = false;        // the matrix is another row's, which counts it
  bool mtp = false;         // of a multi-token prediction module

  bool is_expert() const { return part == ModulePart::kExperts; }
  int64_t copies() const { return layers * per_layer; }
  int64_t elements() const;  // of one copy
  int64_t parameters() const { return tied ? 0 : copies() * elements(); }
  int64_t active_parameters() const { return tied ? 0 : layers * active_per_layer * elements(); }
  double forward_flops_per_token() const;
};

// In the order of the forward pass, which is that of creation; a layer's rows stand together.
std::vector<ModuleRow> module_table(const ModelConfig& config);

// Sums. The modules of multi-token prediction, which only training needs, are counted apart, as published figures do.
struct ModelCounts {
  int64_t total = 0;       // of the model
  int64_t active = 0;      // ... without the experts that do not see a token
  int64_t embedding = 0;   // of both: the token embedding when it is a table of its own, of which a token uses one row
  int64_t mtp = 0;         // of the MTP modules alone; what they share with the model is the model's
  int64_t mtp_active = 0;  // ... without the experts that do not see a token
  // Multiplications of one token at the end of a sequence of this length; half of the attention is causal.
  double forward_flops_per_token = 0;      // of the model
  double mtp_forward_flops_per_token = 0;  // of the MTP modules, the head that each uses again included
};
ModelCounts count_model(const ModelConfig& config, int64_t seq);

// Numbers that generation keeps of a past token, in all layers: keys and values, or what latent attention compresses
// them to.
int64_t kv_cache_elements_per_token(const ModelConfig& config);

}  // namespace ranklab
