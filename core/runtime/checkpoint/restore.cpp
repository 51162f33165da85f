#include "core/runtime/checkpoint/restore.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/read_only_file.h"
#include "core/runtime/checkpoint/load_weights.h"
#include "core/runtime/checkpoint/snapshot.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

// True when values of one dtype may be read as another: floats, but fp64 only when both are.
bool converts(at::ScalarType from, at::ScalarType to) {
  return from == to || (at::isFloatingType(from) && at::isFloatingType(to) && from != at::kDouble && to != at::kDouble);
}

[[noreturn]] void refuse_tensor(const Checkpoint& checkpoint, const std::string& name,
                                const std::vector<int64_t>& shape, at::ScalarType type) {
  const StoredTensor& stored = checkpoint.tensor(name);
  refuse_checkpoint_file(checkpoint.folder(), "tensor " + quote(name) + " is not the model's",
                         std::string(ranklab::name(stored.type)) + " " + shape_text(stored.shape),
                         std::string(ranklab::name(tensor_type(type))) + " " + shape_text(shape));
}

// "BF16 to F32"; nothing when both dtypes are the same.
std::string read_converted(const Checkpoint& checkpoint, const std::string& name, const std::vector<int64_t>& shape,
                           const TensorSlice& slice, const at::Tensor& to) {
  const StoredTensor& stored = checkpoint.tensor(name);
  const std::optional<at::ScalarType> type = scalar_type(stored.type);
  if (stored.shape != shape || !type || !converts(*type, to.scalar_type()))
    refuse_tensor(checkpoint, name, shape, to.scalar_type());
  at::Tensor bytes = at::empty({slice.elements()}, at::TensorOptions().dtype(*type));
  checkpoint.read(name, slice, {static_cast<std::byte*>(bytes.mutable_data_ptr()), bytes.nbytes()});
  to.copy_(bytes.view(to.sizes()));
  if (*type == to.scalar_type()) return "";
  return std::string(ranklab::name(stored.type)) + " to " + std::string(ranklab::name(tensor_type(to.scalar_type())));
}

void restore_loss_scale(const Checkpoint& checkpoint, LossScaler* scaler) {
  const std::map<std::string, double>& kept = checkpoint.manifest().loss_scale;
  if (kept.empty() || scaler == nullptr) return;
  const auto number = [&](const char* key, double least, double most) {
    const auto found = kept.find(key);
    const double value = found == kept.end() ? -1 : found->second;
    if (!(value >= least && value <= most))
      refuse_checkpoint_file(checkpoint.folder(), std::string("loss_scale has no ") + key,
                             found == kept.end() ? "none" : strprintf("%g", value), "a number of a loss scale");
    return value;
  };
  constexpr double kMostScale = 1e30, kMostSteps = 1e15;
  scaler->restore({.scale = number("scale", 1 / kMostScale, kMostScale),
                   .clean_steps = static_cast<int64_t>(number("clean_steps", 0, kMostSteps)),
                   .skipped_steps = static_cast<int64_t>(
                       number("skipped_steps", 0, static_cast<double>(checkpoint.manifest().step)))});
}

// If the optimizer counts no updates, the number of skipped steps comes from the loss scale.
int64_t number_of_skipped(const CheckpointManifest& manifest) {
  if (manifest.updates > 0) return std::max<int64_t>(manifest.step - manifest.updates, 0);
  const auto kept = manifest.loss_scale.find("skipped_steps");
  const bool sound =
      kept != manifest.loss_scale.end() && kept->second >= 0 && kept->second <= static_cast<double>(manifest.step);
  return sound ? static_cast<int64_t>(kept->second) : 0;
}

// Where nobody counted the skipped samples: overflows occur under the first, too large loss scales, so they are taken
// to be the first steps.
SkippedSteps skipped_of(const CheckpointManifest& manifest, const BatchRamp& ramp) {
  const int64_t steps = number_of_skipped(manifest);
  const int64_t samples = manifest.skipped_samples.value_or(ramp.samples_before(steps));
  return {.steps = steps, .samples = std::min(samples, manifest.consumed_samples)};
}

// The stored tensor from which a DiLoCo replica continues with what it has for itself: its own, or if there were fewer
// replicas the first one's, or if there were none what all ranks had. Nothing: the checkpoint has none of them.
std::optional<std::string> stored_of_replica(const Checkpoint& checkpoint, const std::string& name, int64_t replica,
                                             const std::string& parameter, bool weights_only) {
  const std::string common = (name == kReplicaWeight ? "weight" : name) + ("/" + parameter);
  if (weights_only) return name == kReplicaWeight ? std::optional(common) : std::nullopt;
  for (const int64_t from : {replica, int64_t{0}}) {
    const std::string stored = kind_of_replica(name, from) + "/" + parameter;
    if (checkpoint.has(stored)) return stored;
  }
  return checkpoint.has(common) ? std::optional(common) : std::nullopt;
}

// RETURNS: the number of amax histories that the checkpoint lacks.
int64_t restore_buffers(const Checkpoint& checkpoint, CausalLm& model, const TrainConfig& config) {
  const StoredBuffers stored = stored_buffers(checkpoint, model, config);
  for (const auto& [name, buffer] : stored.buffers) {
    const std::vector<int64_t> shape = buffer.sizes().vec();
    read_converted(checkpoint, "buffer/" + name, shape, whole_slice(shape), buffer);
  }
  return stored.new_histories;
}

}  // namespace

Restored restore(const Checkpoint& checkpoint, StepContext& context, bool weights_only) {
  const at::NoGradGuard no_grad;
  const NoCostScope no_cost;
  Restored result;
  {
    const MemoryScope memory(MemoryCategory::kBuffers);
    const int64_t replica = context.ctx.coordinate(Axis::kDpReplica);
    for (const OwnedState& state : context.optimizer.saved_state()) {
      const Parameter& parameter = *state.parameter;
      const std::vector<int64_t>& shape = parameter.partition.global_shape;
      const TensorSlice slice{
          .partition = slice_partition(parameter.partition), .begin = state.begin, .end = state.end};
      const auto note = [&](const std::string& kind, const std::string& change) {
        if (!change.empty()) result.converted.insert(kind + " " + change);
      };
      note("weight", read_converted(checkpoint, "weight/" + parameter.name, shape, slice, state.weight));
      for (const auto& [kind, moment] : state.moments) {
        const std::string name = kind + "/" + parameter.name;
        if (weights_only) continue;
        if (checkpoint.has(name)) {
          note(kind, read_converted(checkpoint, name, shape, slice, moment));
        } else {
          ++result.missing_moments;
        }
      }
      for (const auto& [kind, tensor] : state.of_replica) {
        const auto stored = stored_of_replica(checkpoint, kind, replica, parameter.name, weights_only);
        if (stored)
          note(kind, read_converted(checkpoint, *stored, shape, slice, tensor));
        else if (!weights_only)
          ++result.missing_moments;
      }
    }
    result.new_histories = restore_buffers(checkpoint, context.model, context.plan.config);
  }
  if (!weights_only) restore_loss_scale(checkpoint, context.optimizer.loss_scaler());
  if (!weights_only && context.sentinels != nullptr) context.sentinels->go_on_from(checkpoint.manifest().sentinels);
  const CheckpointManifest& manifest = checkpoint.manifest();
  if (weights_only)
    context.optimizer.restored(0, {});
  else
    context.optimizer.restored(manifest.updates, skipped_of(manifest, context.plan.ramp));
  return result;
}

}  // namespace ranklab
