// A trainable tensor and its place in the global model. The name and the global index of every element are the same in
// every layout; that is what initial weights, gradient comparison, norm clipping and checkpoints are built on. Thread
// rule: a registry belongs to one rank.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/vocabulary.h"
#include "core/spec/model_unit.h"
#include "core/spec/module_spec.h"

namespace ranklab {

// The local tensor is the concatenation along `dim` of global index ranges [begin, end), in this order (a fused gate/up
// projection has two). dim = -1: replicated. Ranges may reach past the global size: those rows are padding (zero, never
// trained).
struct Partition {
  std::vector<int64_t> global_shape;
  int dim = -1;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  bool replicated() const { return dim < 0; }
};

// What a parameter's elements are at the start: each is known by the parameter's name and its place in the global
// tensor alone, so that any part can be made without the others (initial_values.h).
struct InitialValues {
  Init init;
  uint64_t seed = 0;
};

struct Parameter {
  std::string name;          // global: "layers.3.attention.qkv.weight"
  at::Tensor data;           // leaf, requires_grad
  Partition partition;       // over the tp axis (dense) or the expert axes
  bool weight_decay = true;  // false for norms and biases
  bool is_expert = false;
  ModelUnit unit = {};
  // A replicated parameter that sees only this rank's tokens (norm, row bias with sequence parallelism) or this rank's
  // heads (norms of queries and keys): its gradient must be summed over tp.
  bool sum_grad_over_tp = false;
  // The pipeline ranks that hold a copy, ascending, when there are several (a tied embedding, DualPipe's two models):
  // their gradients are summed, and the first one speaks for all.
  std::vector<int> pipeline_ranks = {};
  // Set while `data` has its sizes and no memory, because its values are made later, or only those of a shard.
  std::optional<InitialValues> unmade = {};
};

class QuantizerBook;  // core/parallel/quantizer_book.h

class ParameterRegistry {
 public:
  ParameterRegistry(uint64_t seed, at::ScalarType dtype, at::Device device)
      : seed_(seed), dtype_(dtype), device_(device) {}

  // Allocates the local part, fills it from the global stream, and registers it; after make_values_later() it does
  // neither (Parameter::unmade). Names are unique. Returns a reference that stays valid.
  Parameter& create(std::string name, Partition partition, Init init, bool weight_decay);
  std::vector<Parameter*> parameters() const;  // in creation order, the same on all ranks of a stage
  Parameter* find(const std::string& name) const;
  // For models that may be larger than a rank's memory (PyTorch FSDP's start from the meta device): whoever uses the
  // parameters makes them first, whole (make_values()) or in shards. Parameters on the meta device have no values.
  void make_values_later() { later_ = true; }
  // Which part of the model the parameters made from here on belong to. RETURNS: that of those before.
  ModelUnit begin_unit(ModelUnit unit) { return std::exchange(unit_, std::move(unit)); }
  at::ScalarType dtype() const { return dtype_; }
  at::Device device() const { return device_; }
  uint64_t seed() const { return seed_; }
  // Which linear layers made from here on quantize their products; null (the start): none.
  QuantizerBook* quantizers() const { return quantizers_; }
  void set_quantizers(QuantizerBook* book) { quantizers_ = book; }

 private:
  uint64_t seed_;
  at::ScalarType dtype_;
  at::Device device_;
  bool later_ = false;
  ModelUnit unit_ = {};
  QuantizerBook* quantizers_ = nullptr;
  std::vector<std::unique_ptr<Parameter>> parameters_;
  std::unordered_map<std::string, Parameter*> by_name_;  // a rank may have tens of thousands: all experts of a model
};

// A node of the module tree: what is made there has its path before the name.
class ModuleScope {
 public:
  explicit ModuleScope(ParameterRegistry& registry, std::string path = {})
      : registry_(registry), path_(std::move(path)) {}

  ModuleScope operator[](const std::string& child) const { return ModuleScope(registry_, path_of(child)); }
  // "layers.3.attention.qkv" of "qkv".
  std::string path_of(const std::string& child) const { return path_.empty() ? child : path_ + "." + child; }
  const std::string& path() const { return path_; }
  ParameterRegistry& registry() const { return registry_; }

  // Part `index` of `count` of the parameters of a module; null: it has no bias. Matrices decay.
  Parameter& make_weight(const ModuleSpec& spec, int index = 0, int count = 1) const;
  Parameter* make_bias(const ModuleSpec& spec, int index = 0, int count = 1) const;

 private:
  ParameterRegistry& registry_;
  std::string path_;
};

// Partition helpers. shard_dim splits `dim` evenly (throws when it does not divide); shard_segments splits each of the
// given segment lengths along dim 0 evenly, for fused projections [gate; up] or [q; k; v]; shard_padded pads dim 0 up
// to a multiple of count.
Partition replicated(std::vector<int64_t> shape);
Partition shard_dim(std::vector<int64_t> shape, int dim, int index, int count);
Partition shard_segments(std::vector<int64_t> shape, const std::vector<int64_t>& segments, int index, int count);
Partition shard_padded(std::vector<int64_t> shape, int index, int count);
// As the split says; the fused parts of a column split each by themselves.
Partition shard(const std::vector<int64_t>& shape, const std::vector<int64_t>& parts, ModuleSplit split, int index,
                int count);
std::vector<int64_t> local_shape(const Partition& partition);

}  // namespace ranklab
