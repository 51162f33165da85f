#include "core/runtime/checkpoint/load_weights.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/base/text.h"
#include "core/checkpoint/read_only_file.h"
#include "core/runtime/checkpoint/settings.h"
#include "core/runtime/checkpoint/snapshot.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"
#include "core/spec/amax_history.h"

namespace ranklab {
namespace {

at::ScalarType type_of(const Checkpoint& checkpoint, const std::string& name) {
  const TensorType type = checkpoint.tensor(name).type;
  const std::optional<at::ScalarType> scalar = scalar_type(type);
  if (scalar && is_float(type)) return *scalar;
  refuse_checkpoint_file(checkpoint.folder(), "tensor " + quote(name) + " has a type that weights cannot have",
                         std::string(ranklab::name(type)), "F64, F32, BF16 or F16");
}

void read_weight(const Checkpoint& checkpoint, const std::string& name, const std::vector<int64_t>& shape,
                 const SlicePartition& partition, const at::Tensor& to) {
  const StoredTensor& stored = checkpoint.tensor(name);
  if (stored.shape != shape)
    refuse_checkpoint_file(checkpoint.folder(), "tensor " + quote(name) + " is not the model's",
                           shape_text(stored.shape), shape_text(shape));
  at::Tensor values = at::empty(to.sizes(), at::TensorOptions().dtype(type_of(checkpoint, name)));
  checkpoint.read(name, {.partition = partition, .begin = 0, .end = to.numel()},
                  {static_cast<std::byte*>(values.mutable_data_ptr()), values.nbytes()});
  to.copy_(values);
}

void read_weight(const TensorSource& source, const std::string& name, const std::vector<int64_t>& shape,
                 const SlicePartition& partition, const at::Tensor& to) {
  const TensorInfo& stored = source.tensor(name);
  const std::optional<at::ScalarType> scalar = scalar_type(stored.type);
  if (!scalar || !is_float(stored.type) || stored.shape != shape)
    refuse_checkpoint_file(source.where(), "tensor " + quote(name) + " is not the model's", stored.describe(),
                           shape_text(shape));
  const std::vector<std::byte> whole = source.read(name);
  at::Tensor values = at::zeros(to.sizes(), at::TensorOptions().dtype(*scalar));  // padding stays zero
  auto* mine = static_cast<std::byte*>(values.mutable_data_ptr());
  const auto element = values.element_size();
  for (const SliceRun& run : slice_runs(shape, {.partition = partition, .begin = 0, .end = to.numel()}))
    std::memcpy(mine + run.at * element, whole.data() + run.global * element,
                static_cast<size_t>(run.length * element));
  to.copy_(values);
}

// Whether the settings that determine the number and length of amax histories are the same.
bool same_precision(const CheckpointManifest& manifest, const TrainConfig& config) {
  const SettingTexts now = all_settings(config);
  return std::ranges::all_of(manifest.config, [&](const auto& saved) {
    const auto same = now.find(saved.first);
    return !saved.first.starts_with("precision.") || same == now.end() || same->second == saved.second;
  });
}

}  // namespace

void load_weights(const TensorSource& source, CausalLm& model) {
  static std::mutex one_rank;  // sources are read by one thread
  const std::lock_guard lock(one_rank);
  const at::NoGradGuard no_grad;
  const NoCostScope no_cost;
  for (const Parameter* parameter : model.registry().parameters())
    read_weight(source, "weight/" + parameter->name, parameter->partition.global_shape,
                slice_partition(parameter->partition), parameter->data);
  for (const auto& [name, buffer] : model.buffers())
    if (source.find("buffer/" + name) != nullptr)
      read_weight(source, "buffer/" + name, buffer.sizes().vec(), {}, buffer);
}

StoredBuffers stored_buffers(const Checkpoint& checkpoint, CausalLm& model, const TrainConfig& config) {
  const CheckpointManifest& manifest = checkpoint.manifest();
  const bool imported = manifest.config.empty();
  const bool has_histories = std::ranges::any_of(
      manifest.tensors, [](const auto& tensor) { return tensor.first.ends_with(kAmaxHistorySuffix); });
  const bool may_differ = !has_histories || !same_precision(manifest, config);
  StoredBuffers result;
  for (const auto& [name, buffer] : model.buffers()) {
    const bool has = checkpoint.has("buffer/" + name);
    const bool fits = has && checkpoint.tensor("buffer/" + name).shape == buffer.sizes().vec();
    const bool new_history = !imported && name.ends_with(kAmaxHistorySuffix) && may_differ && !fits;
    result.new_histories += new_history ? 1 : 0;
    if (!new_history && (has || !imported)) result.buffers.emplace_back(name, buffer);
  }
  return result;
}

void load_weights(const Checkpoint& checkpoint, CausalLm& model, const TrainConfig& config) {
  const at::NoGradGuard no_grad;
  const NoCostScope no_cost;
  for (const Parameter* parameter : model.registry().parameters())
    read_weight(checkpoint, "weight/" + parameter->name, parameter->partition.global_shape,
                slice_partition(parameter->partition), parameter->data);
  for (const auto& [name, buffer] : stored_buffers(checkpoint, model, config).buffers)
    read_weight(checkpoint, "buffer/" + name, buffer.sizes().vec(), {}, buffer);
}

}  // namespace ranklab
