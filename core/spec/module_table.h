// The parameters of a model by module, the same in every layer that has them, with how a layout shards them and which
// of them are active for a token; and the totals. Derived from the specs that layers are built from (layer_specs.h).
// Names are those of the registry (core/nn/parameter.h), with "*" for the layer (for "mtp" the module) and for the
// expert. Torch-free. Cost: nothing. Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/model_config.h"
#include "core/spec/module_spec.h"

namespace ranklab {

struct ModuleRow {
  std::string parameter = {};       // "layers.*.attention.qkv.weight"
  std::vector<int64_t> shape = {};  // unsharded, without padding
  std::vector<int64_t> parts = {};  // ModuleSpec::parts()
  ModulePart part = ModulePart::kEmbedding;
  int64_t first_layer = 0;       // the first layer (for "mtp" the first module) that has it ...
  int64_t layers = 1;            // ... and the number of consecutive layers that have it
  int64_t per_layer = 1;         // experts of a layer
  int64_t active_per_layer = 1;  // of them, those active for a token
  ModuleSplit split = ModuleSplit::kReplicated;
  Init init = {};           // the values that training starts from
  bool multiplies = false;  // tokens are multiplied by it (a GEMM): 2 FLOPs per element and token forward
  bool is_gate = false;     // of tokens or experts: its GEMM is in fp32, whatever the precision
  bool by_heads = false;    // replicated on every tp rank, which uses it only for its own heads
  bool tied = false;        // the matrix is counted by another row
  bool mtp = false;         // of a multi-token prediction module

  bool is_expert() const { return part == ModulePart::kExperts; }
  int64_t copies() const { return layers * per_layer; }
  int64_t elements() const;  // of one copy
  int64_t parameters() const { return tied ? 0 : copies() * elements(); }
  int64_t active_parameters() const { return tied ? 0 : layers * active_per_layer * elements(); }
  double forward_flops_per_token() const;
};

// In the order of the forward pass, which is also creation order; the rows of a layer are consecutive.
std::vector<ModuleRow> module_table(const ModelConfig& config);

// Is it the name of a parameter ("layers.0.attention.qkv.weight"), of a bias that is counted in no row (a router's), or
// of a module with parameters in it ("layers.0.attention")?
bool names_part_of_model(const ModelConfig& config, std::string_view name);

// Totals. Multi-token-prediction modules, which only training needs, are counted separately, as in published figures.
struct ModelCounts {
  int64_t total = 0;       // of the model
  int64_t active = 0;      // ... without the experts that are not active for a token
  int64_t embedding = 0;   // part of both: the token embedding if it is not tied, of which a token uses one row
  int64_t mtp = 0;         // of the MTP modules only; what they share with the model counts there
  int64_t mtp_active = 0;  // ... without the experts that are not active for a token
  // Forward FLOPs of one token at the end of a sequence of this length; half of the attention is causal.
  double forward_flops_per_token = 0;      // of the model
  double mtp_forward_flops_per_token = 0;  // of the MTP modules, including the head that each of them reuses
};
ModelCounts count_model(const ModelConfig& config, int64_t seq);

// Forward FLOPs of one token at the end of a sequence of `seq`, by layer of the model, and of what follows the last
// one: head and multi-token-prediction modules. The embedding is a lookup.
struct LayerFlops {
  std::vector<double> layers;
  double behind = 0;
};
LayerFlops flops_of_layers(const ModelConfig& config, int64_t seq);

// Elements that generation caches per past token, over all layers: keys and values, or latent attention's compressed
// vector.
int64_t kv_cache_elements_per_token(const ModelConfig& config);

}  // namespace ranklab
