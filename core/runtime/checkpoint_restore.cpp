#include "core/runtime/checkpoint_restore.h"

#include <ATen/ATen.h>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/read_only_file.h"
#include "core/runtime/checkpoint_snapshot.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

void check_shape(const Checkpoint& checkpoint, const std::string& name, const std::vector<int64_t>& shape,
                 at::ScalarType type) {
  const StoredTensor& stored = checkpoint.tensor(name);
  if (stored.shape == shape && stored.type == tensor_type(type)) return;
  refuse_checkpoint_file(checkpoint.folder(), "tensor " + quote(name) + " is not the model's",
                         std::string(ranklab::name(stored.type)) + " " + shape_text(stored.shape),
                         std::string(ranklab::name(tensor_type(type))) + " " + shape_text(shape));
}

void read_into(const Checkpoint& checkpoint, const std::string& name, const std::vector<int64_t>& shape,
               const TensorSlice& slice, const at::Tensor& to) {
  check_shape(checkpoint, name, shape, to.scalar_type());
  at::Tensor bytes = at::empty({slice.elements()}, at::TensorOptions().dtype(to.scalar_type()));
  checkpoint.read(name, slice, {static_cast<std::byte*>(bytes.mutable_data_ptr()), bytes.nbytes()});
  to.copy_(bytes.view(to.sizes()));
}

void restore_buffers(const Checkpoint& checkpoint, CausalLm& model) {
  const bool imported = checkpoint.manifest().config.empty();
  for (const auto& [name, buffer] : model.buffers()) {
    const std::string stored = "buffer/" + name;
    if (imported && !checkpoint.has(stored)) continue;  // stays as it begins
    const std::vector<int64_t> shape = buffer.sizes().vec();
    read_into(checkpoint, stored, shape, whole_slice(shape), buffer);
  }
}

}  // namespace

Restored restore(const Checkpoint& checkpoint, StepContext& context, bool weights_only) {
  const at::NoGradGuard no_grad;
  const NoCostScope no_cost;
  Restored result;
  {
    const MemoryScope memory(MemoryCategory::kBuffers);
    for (const OwnedState& state : context.optimizer.owned_state()) {
      const Parameter& parameter = *state.parameter;
      const std::vector<int64_t>& shape = parameter.partition.global_shape;
      const TensorSlice slice{
          .partition = slice_partition(parameter.partition), .begin = state.begin, .end = state.end};
      read_into(checkpoint, "weight/" + parameter.name, shape, slice, state.weight);
      for (const auto& [kind, moment] : state.moments) {
        const std::string name = kind + "/" + parameter.name;
        if (weights_only) continue;
        if (checkpoint.has(name)) {
          read_into(checkpoint, name, shape, slice, moment);
        } else {
          ++result.missing_moments;
        }
      }
    }
    restore_buffers(checkpoint, context.model);
  }
  context.optimizer.restored(weights_only ? 0 : checkpoint.manifest().updates);
  return result;
}

}  // namespace ranklab
