// What one rank puts into a checkpoint, copied to host memory so that training continues while it is written. With a
// ZeRO stage a rank writes its own shards; otherwise data-parallel peers divide the writing of their replicas: rank i
// mod dp writes parameter i. Where parameters are replicated over tp or over pipeline ranks, the first rank writes
// them. Cost: one copy of what this rank writes. Thread rule: its rank's thread creates it, and a writer's thread reads
// and frees it.
#pragma once
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint_writer.h"
#include "core/runtime/components.h"

namespace ranklab {

struct RankSnapshot {
  int rank = 0;
  std::vector<PieceToWrite> pieces = {};  // their bytes are in `storage`
  std::vector<at::Tensor> storage = {};
};

RankSnapshot take_snapshot(StepContext& context);

// A piece of a tensor before the copy.
struct SnapshotPiece {
  NamedSlice place = {};
  at::Tensor elements = {};
};
std::vector<SnapshotPiece> snapshot_pieces(StepContext& context);

// What a DiLoCo replica has for itself is "exp_avg.1/NAME".
std::string kind_of_replica(const std::string& name, int64_t replica);

// Conversions to the types of the torch-free checkpoint files.
SlicePartition slice_partition(const Partition& partition);
TensorType tensor_type(at::ScalarType type);  // throws kInternal for a dtype that checkpoints do not support
std::optional<at::ScalarType> scalar_type(TensorType type);  // nothing for a type that no state has

}  // namespace ranklab
