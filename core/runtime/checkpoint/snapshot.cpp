#include "core/runtime/checkpoint/snapshot.h"

#include <array>
#include <map>
#include <utility>

#include "core/base/error.h"
#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

constexpr std::array<std::pair<at::ScalarType, TensorType>, 5> kTypes = {{{at::kFloat, TensorType::kF32},
                                                                          {at::kDouble, TensorType::kF64},
                                                                          {at::kBFloat16, TensorType::kBF16},
                                                                          {at::kHalf, TensorType::kF16},
                                                                          {at::kLong, TensorType::kI64}}};

// Chooses the rank that writes, among ranks that hold the same elements.
class Writers {
 public:
  explicit Writers(StepContext& context) : ctx_(context.ctx), shards_optimizer_(context.plan.zero().optimizer) {
    for (const Parameter* parameter : context.model.registry().parameters()) {
      const auto index = static_cast<int>(index_.size());
      index_[parameter] = index;
    }
  }

  bool writes(const Parameter& parameter) const {
    if (!holds_first(parameter)) return false;
    const Axis data = parameter.is_expert ? Axis::kEdp : ctx_.replica_axis();
    const Axis shard = parameter.is_expert ? Axis::kEdpShard : Axis::kDpShard;
    const Axis replica = parameter.is_expert ? Axis::kEdpReplica : Axis::kDpReplica;
    if (shards_optimizer_ && ctx_.size(shard) > 1) return ctx_.coordinate(replica) == 0;
    return index_.at(&parameter) % ctx_.size(data) == ctx_.coordinate(data);
  }
  // The same for what a DiLoCo replica has for itself.
  bool writes_of_replica(const Parameter& parameter) const {
    if (!holds_first(parameter)) return false;
    const Axis shard = parameter.is_expert ? Axis::kEdpShard : Axis::kDpShard;
    if (shards_optimizer_ && ctx_.size(shard) > 1) return true;
    return index_.at(&parameter) % ctx_.size(shard) == ctx_.coordinate(shard);
  }
  bool writes_buffers() const { return ctx_.coordinate(Axis::kTp) == 0 && ctx_.coordinate(ctx_.replica_axis()) == 0; }

 private:
  // Whether this is the first of the pipeline ranks that have a copy, and of the tensor-parallel ones.
  bool holds_first(const Parameter& parameter) const {
    const auto& holders = parameter.pipeline_ranks;
    if (!holders.empty() && holders.front() != ctx_.coordinate(Axis::kPp)) return false;
    const Axis tensor = parameter.is_expert ? Axis::kEtp : Axis::kTp;
    return !parameter.partition.replicated() || ctx_.coordinate(tensor) == 0;
  }

  RankContext& ctx_;
  bool shards_optimizer_;
  std::map<const Parameter*, int> index_;
};

}  // namespace

SlicePartition slice_partition(const Partition& partition) {
  if (partition.replicated()) return {};
  return {.dim = partition.dim, .ranges = partition.ranges};
}

TensorType tensor_type(at::ScalarType type) {
  for (const auto& [scalar, stored] : kTypes) {
    if (scalar == type) return stored;
  }
  throw Error(ErrorKind::kInternal, {.where = "checkpoint",
                                     .what = "a state of a type that checkpoints do not hold",
                                     .got = at::toString(type),
                                     .want = "fp32, fp64, bf16, fp16 or int64"});
}

std::optional<at::ScalarType> scalar_type(TensorType type) {
  for (const auto& [scalar, stored] : kTypes) {
    if (stored == type) return scalar;
  }
  return std::nullopt;
}

std::string kind_of_replica(const std::string& name, int64_t replica) { return name + "." + std::to_string(replica); }

std::vector<SnapshotPiece> snapshot_pieces(StepContext& context) {
  const at::NoGradGuard no_grad;
  const Writers writers(context);
  std::vector<SnapshotPiece> pieces;
  const int64_t replica = context.ctx.coordinate(Axis::kDpReplica);
  for (const OwnedState& state : context.optimizer.saved_state()) {
    const Parameter& parameter = *state.parameter;
    const TensorSlice slice{.partition = slice_partition(parameter.partition), .begin = state.begin, .end = state.end};
    const auto add = [&](const std::string& kind, const at::Tensor& tensor) {
      pieces.push_back({{kind + "/" + parameter.name, parameter.partition.global_shape, slice}, tensor});
    };
    if (writers.writes(parameter)) {
      add("weight", state.weight);
      for (const auto& [name, moment] : state.moments) add(name, moment);
    }
    if (!state.of_replica.empty() && writers.writes_of_replica(parameter))
      for (const auto& [name, tensor] : state.of_replica) add(kind_of_replica(name, replica), tensor);
  }
  if (!writers.writes_buffers()) return pieces;
  for (const auto& [name, buffer] : context.model.buffers())
    pieces.push_back({{"buffer/" + name, buffer.sizes().vec(), whole_slice(buffer.sizes().vec())}, buffer});
  return pieces;
}

RankSnapshot take_snapshot(StepContext& context) {
  const at::NoGradGuard no_grad;
  const NoCostScope no_cost;
  const MemoryScope memory(MemoryCategory::kBuffers);
  RankSnapshot snapshot{.rank = context.ctx.global_rank()};
  for (SnapshotPiece& piece : snapshot_pieces(context)) {
    // Copies even if the tensor is already on the host, because training continues to write to it.
    const at::Tensor& elements = piece.elements;
    const at::Tensor copy = elements.detach().to(at::kCPU, elements.scalar_type(), false, true).contiguous();
    snapshot.storage.push_back(copy);
    snapshot.pieces.push_back({.tensor = std::move(piece.place.tensor),
                               .type = tensor_type(copy.scalar_type()),
                               .shape = std::move(piece.place.shape),
                               .slice = std::move(piece.place.slice),
                               .bytes = {static_cast<const std::byte*>(copy.const_data_ptr()), copy.nbytes()}});
  }
  return snapshot;
}

}  // namespace ranklab
