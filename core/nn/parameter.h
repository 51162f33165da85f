// A trainable tensor and its position in the global model. The name and the global index of every element are the same
// in every parallel layout; initial weights, gradient comparison, norm clipping and checkpoints rely on that. Thread
// rule: a registry belongs to one rank.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/vocabulary.h"
#include "core/nn/module_hooks.h"
#include "core/spec/model_unit.h"
#include "core/spec/module_spec.h"

namespace ranklab {

// The local tensor is the concatenation along `dim` of global index ranges [begin, end), in this order (a fused gate/up
// projection has two ranges). dim = -1: replicated. Ranges may extend past the global size; these rows are padding
// (zero, never trained).
struct Partition {
  std::vector<int64_t> global_shape;
  int dim = -1;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  bool replicated() const { return dim < 0; }
};

// How a parameter is initialized. Each element depends only on the parameter's name and the element's index in the
// global tensor, so any part can be made without the others (initial_values.h).
struct InitialValues {
  Init init;
  uint64_t seed = 0;
  // wrong on purpose: every shard draws the numbers of the first shard (InjectedBug::kInitPerShard)
  bool as_first_shard = false;
};

struct Parameter {
  std::string name;          // global: "layers.3.attention.qkv.weight"
  at::Tensor data;           // leaf, requires_grad
  Partition partition;       // over the tp axis (dense) or the expert axes
  bool weight_decay = true;  // false for norms and biases
  bool is_expert = false;
  bool hidden_matrix = false;  // core/spec/hidden_matrix.h
  ModelUnit unit = {};
  // The gradient must be summed over tp: a replicated parameter that sees only this rank's tokens (a norm, or the bias
  // of a row split, with sequence parallelism) or only this rank's heads (norms of queries and keys).
  bool sum_grad_over_tp = false;
  // The pipeline ranks that hold a copy, ascending, if there are several (a tied embedding, the two models of
  // DualPipe): their gradients are summed, and the first rank represents all copies.
  std::vector<int> pipeline_ranks = {};
  // Set while `data` has sizes but no memory, because its values are made later or only for one shard.
  std::optional<InitialValues> unmade = {};
};

// The parameter's name, with "*" in place of its expert's number: "layers.1.mlp.experts.*.up.weight".
std::string parameter_key(const Parameter& parameter);

class QuantizerBook;  // core/parallel/quantized/quantizer_book.h

class ParameterRegistry {
 public:
  ParameterRegistry(uint64_t seed, at::ScalarType dtype, at::Device device)
      : seed_(seed), dtype_(dtype), device_(device) {}

  // Allocates the local part, fills it from the global random stream, and registers it; after make_values_later() it
  // neither allocates nor fills (Parameter::unmade). Names must be unique. Returns a reference that stays valid.
  Parameter& create(std::string name, Partition partition, Init init, bool weight_decay);
  std::vector<Parameter*> parameters() const;  // in creation order, the same on all ranks of a stage
  Parameter* find(const std::string& name) const;
  // For models that may be larger than a rank's memory (like initialization on the meta device in PyTorch FSDP):
  // whoever uses the parameters must first make their values, whole (make_values()) or in shards. Parameters on the
  // meta device have no values.
  void make_values_later() { later_ = true; }
  // Sets the model unit of the parameters created from here on. RETURNS: the previous unit.
  ModelUnit begin_unit(ModelUnit unit) { return std::exchange(unit_, std::move(unit)); }
  const ModelUnit& unit() const { return unit_; }
  at::ScalarType dtype() const { return dtype_; }
  at::Device device() const { return device_; }
  uint64_t seed() const { return seed_; }
  // Hooks around the uses of the modules that own these parameters.
  ModuleHooks& hooks() { return hooks_; }
  // The quantizers of the linear layers created from here on; null (initially): these layers do not quantize their
  // GEMMs.
  QuantizerBook* quantizers() const { return quantizers_; }
  void set_quantizers(QuantizerBook* book) { quantizers_ = book; }

 private:
  uint64_t seed_;
  at::ScalarType dtype_;
  at::Device device_;
  bool later_ = false;
  ModelUnit unit_ = {};
  QuantizerBook* quantizers_ = nullptr;
  ModuleHooks hooks_;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::unordered_map<std::string, Parameter*> by_name_;  // a rank may have tens of thousands: all experts of a model
};

// A node of the module tree: parameters created in it have its path as a prefix of their name. A module may instead use
// the parameters of another one, which was made before; its own path then only tells its uses apart (module_hooks.h).
class ModuleScope {
 public:
  explicit ModuleScope(ParameterRegistry& registry, std::string path = {})
      : registry_(registry), path_(std::move(path)) {}

  ModuleScope operator[](const std::string& child) const {
    ModuleScope scope(registry_, path_of(child));
    if (shares_parameters()) scope.owner_ = owner_ + "." + child;
    return scope;
  }
  // The same place in the tree for a module with the parameters of the module at `owner`.
  ModuleScope with_parameters_of(const ModuleScope& owner) const {
    ModuleScope scope(registry_, path_);
    scope.owner_ = owner.path_;
    return scope;
  }
  bool shares_parameters() const { return !owner_.empty(); }
  // "layers.3.attention.qkv" for "qkv".
  std::string path_of(const std::string& child) const { return path_.empty() ? child : path_ + "." + child; }
  const std::string& path() const { return path_; }
  // What the names of its parameters begin with.
  const std::string& parameter_path() const { return shares_parameters() ? owner_ : path_; }
  ParameterRegistry& registry() const { return registry_; }

  // Creates shard `index` of `count` of a module's parameters, or finds the parameters that it shares; null if the
  // module has no bias. Weight decay applies to matrices.
  Parameter& make_weight(const ModuleSpec& spec, int index = 0, int count = 1) const;
  Parameter* make_bias(const ModuleSpec& spec, int index = 0, int count = 1) const;
  // The tensors of all parameters of the module so far.
  std::vector<at::Tensor> weights() const;

 private:
  // Null if they are the module's own, which are still to be created. Throws kInternal if the owner does not have them.
  Parameter* shared(const std::string& name) const;

  ParameterRegistry& registry_;
  std::string path_;
  std::string owner_ = {};  // path of the module that has the parameters; "": this one
};

// Partition helpers. shard_dim splits `dim` evenly (throws when it does not divide); shard_segments splits each of the
// given segments of dim 0 evenly, for fused projections [gate; up] or [q; k; v]; shard_padded pads dim 0 up to a
// multiple of count.
Partition replicated(std::vector<int64_t> shape);
Partition shard_dim(std::vector<int64_t> shape, int dim, int index, int count);
Partition shard_segments(std::vector<int64_t> shape, const std::vector<int64_t>& segments, int index, int count);
Partition shard_padded(std::vector<int64_t> shape, int index, int count);
// According to `split`; in a column split each fused part is split separately.
Partition shard(const std::vector<int64_t>& shape, const std::vector<int64_t>& parts, ModuleSplit split, int index,
                int count);
std::vector<int64_t> local_shape(const Partition& partition);

}  // namespace ranklab
