// What one rank puts into a checkpoint, copied to the host's memory so that training can go on while it is written.
// With a ZeRO stage a rank has its own pieces; else data-parallel peers hold the same and share the writing: parameter
// i is dp rank i's, modulo their number. Of copies over tp the first rank writes, of copies on several pipeline ranks
// the first of these. Cost: one copy of what this rank writes. Thread rule: its rank's thread makes it, a writer's
// thread reads and frees it.
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
  std::vector<PieceToWrite> pieces = {};  // whose bytes are those of:
  std::vector<at::Tensor> storage = {};
};

RankSnapshot take_snapshot(StepContext& context);

// The same before it is copied.
struct SnapshotPiece {
  std::string tensor = {};  // "weight/layers.0...", "exp_avg/...", "buffer/..."
  at::Tensor elements = {};
  std::vector<int64_t> shape = {};  // of the whole
  TensorSlice slice = {};
};
std::vector<SnapshotPiece> snapshot_pieces(StepContext& context);

// As the torch-free files of a checkpoint have them.
SlicePartition slice_partition(const Partition& partition);
TensorType tensor_type(at::ScalarType type);                 // throws kInternal for one that no checkpoint holds
std::optional<at::ScalarType> scalar_type(TensorType type);  // nothing for such a one

}  // namespace ranklab
