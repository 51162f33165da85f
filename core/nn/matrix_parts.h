// The matrices that are fused in one weight (queries, keys and values; gate and up), each mapped by itself, so that
// what an optimizer of whole matrices computes does not depend on how layers fuse them. A weight's parts are those in
// which tensor parallelism splits its rows (ModuleSpec::out_parts): the weight matrices of Hugging Face's models.
// (Megatron-LM splits queries, keys and values, too, and keeps gate and up together.) The weight may be in shards of
// equal size along a dimension, as the ranks of a tensor-parallel group have them. Cost: a copy. Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "core/nn/parameter.h"

namespace ranklab {

// A matrix to one of the same shape.
using MatrixMap = std::function<at::Tensor(const at::Tensor& matrix)>;

// What orthogonalizing whole matrices takes.
struct MatrixWork {
  double cost = 0;       // rows x columns x the smaller of them, summed: FLOPs but for a factor
  int64_t matrices = 0;  // those fused in one weight count singly
  MatrixWork& operator+=(const MatrixWork& other) {
    cost += other.cost;
    matrices += other.matrices;
    return *this;
  }
};
// `ranks`: over how many the parameter is partitioned, if it is.
MatrixWork matrix_work(const Parameter& parameter, int ranks);

// `shards`: the parameter's whole local data of every rank of the group over which it is partitioned, or one, if it is
// replicated or the group has one rank. RETURNS: what shard `own` becomes, contiguous.
at::Tensor map_parts(const Parameter& parameter, const std::vector<at::Tensor>& shards, size_t own,
                     const MatrixMap& map);

}  // namespace ranklab
