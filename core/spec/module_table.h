// The parameters of a model, one row per module, which stands for all layers that have the module. A row says how a
// layout shards the module and how many of its copies are active for a token; ModelCounts has the totals. Derived from
// the specs from which layers are built (layer_specs.h). Names are those of the registry (core/nn/parameter.h), with
// "*" for the layer (in "mtp", for the module) and for the expert. Torch-free. Cost: negligible. Thread rule: pure.
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
  int64_t uses = 1;              // times that a forward applies it: more than 1 in a repeated MTP module
  int64_t per_layer = 1;         // number of experts per layer; 1 for other modules
  int64_t active_per_layer = 1;  // how many of these are active for a token
  ModuleSplit split = ModuleSplit::kReplicated;
  Init init = {};           // initial values
  bool multiplies = false;  // tokens are multiplied by it (a GEMM): 2 FLOPs per element and token forward
  bool is_gate = false;     // a gate of tokens or experts: its GEMM is in fp32, whatever the precision
  bool by_heads = false;    // replicated on every tp rank, which uses it only for its own heads
  bool tied = false;        // the matrix is shared with another row, which counts it
  bool mtp = false;         // part of a multi-token-prediction module

  bool is_expert() const { return part == ModulePart::kExperts; }
  int64_t copies() const { return layers * per_layer; }
  int64_t elements() const;  // elements of one copy
  int64_t parameters() const { return tied ? 0 : copies() * elements(); }
  int64_t active_parameters() const { return tied ? 0 : layers * active_per_layer * elements(); }
  double forward_flops_per_token() const;
};

// In the order of the forward pass, which is also creation order; the rows of a layer are consecutive.
std::vector<ModuleRow> module_table(const ModelConfig& config);

// Whether `name` is the name of a parameter ("layers.0.attention.qkv.weight"), of a bias that no row counts (a
// router's), or of a module with parameters in it ("layers.0.attention").
bool names_part_of_model(const ModelConfig& config, std::string_view name);

// Totals. Multi-token-prediction modules, which only training needs, are counted separately, as in published figures.
struct ModelCounts {
  int64_t total = 0;       // all parameters of the model
  int64_t active = 0;      // the same without experts that are not active for a token
  int64_t embedding = 0;   // included in both: the token embedding if it is not tied, of which a token uses one row
  int64_t mtp = 0;         // of the MTP modules alone; what they share with the model counts as the model's
  int64_t mtp_active = 0;  // the same without experts that are not active for a token
  // Forward FLOPs of one token, the mean over a sequence of length `seq`; attention is causal, so half of it counts.
  double forward_flops_per_token = 0;  // of the model
  // of the MTP modules, as often as they are applied, including the head that is reused each time
  double mtp_forward_flops_per_token = 0;
};
ModelCounts count_model(const ModelConfig& config, int64_t seq);

// Forward FLOPs of one token, the mean over a sequence of length `seq`: for each layer of the model, and for what
// follows the last layer (head and multi-token-prediction modules). The embedding is a lookup and needs none.
struct LayerFlops {
  std::vector<double> layers;
  double behind = 0;
};
LayerFlops flops_of_layers(const ModelConfig& config, int64_t seq);

// The number of elements that generation caches per past token, over all layers: keys and values, or latent attention's
// compressed vector.
int64_t kv_cache_elements_per_token(const ModelConfig& config);

}  // namespace ranklab
