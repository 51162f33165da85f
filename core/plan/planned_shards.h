// What each rank of a layout writes into a checkpoint: which slice of which global tensor. With a ZeRO stage a rank has
// its own pieces; else data-parallel peers share the writing, parameter i by dp rank i modulo their number; of copies
// the first rank writes. Computed from the numbers alone and held by a test to what runs write
// (core/runtime/checkpoint_snapshot.h), so that a checkpoint can be cut anew without starting a rank. Torch-free.
// Cost: a visit of each parameter of the rank. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "core/checkpoint/slices.h"
#include "core/model/module_table.h"
#include "core/runtime/train_config.h"

namespace ranklab {

struct PlannedPiece {
  std::string parameter = {};
  std::vector<int64_t> shape = {};  // global
  TensorSlice slice = {};
};

// Weights, and with each of them its moments.
std::vector<PlannedPiece> planned_pieces(const RunPlan& plan, int global_rank);
// Names of the buffers ("layers.3.mlp.router.bias"), each whole.
std::vector<std::string> planned_buffers(const RunPlan& plan, int global_rank);

// How rank `index` of `count` cuts a module's parameter.
SlicePartition planned_partition(const ModelConfig& model, const ModuleRow& row, int index, int count);

}  // namespace ranklab
