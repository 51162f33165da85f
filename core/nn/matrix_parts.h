// The matrices that are fused in one weight (queries, keys and values; gate and up), each mapped separately, so that
// the result of an optimizer on whole matrices does not depend on how layers fuse them. A weight's parts are those in
// which tensor parallelism splits its rows (ModuleSpec::out_parts), which are the separate weight matrices of Hugging
// Face's models. (Megatron-LM also separates queries, keys and values, but keeps gate and up together.) The weight may
// be given in shards of equal size along a dimension, as the ranks of a tensor-parallel group hold them. Cost: a copy.
// Thread rule: pure.
#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "core/nn/parameter.h"

namespace ranklab {

// Maps a matrix to one of the same shape.
using MatrixMap = std::function<at::Tensor(const at::Tensor& matrix)>;

// The work of orthogonalizing whole matrices.
struct MatrixWork {
  double cost = 0;       // rows x columns x the smaller of the two, summed over matrices: proportional to FLOPs
  int64_t matrices = 0;  // matrices fused in one weight are counted separately
  MatrixWork& operator+=(const MatrixWork& other) {
    cost += other.cost;
    matrices += other.matrices;
    return *this;
  }
};
// `ranks`: the number of ranks over which the parameter is partitioned, if it is.
MatrixWork matrix_work(const Parameter& parameter, int ranks);

// `shards`: the parameter's complete local data on every rank of the group over which it is partitioned; a single one
// if it is replicated or the group has one rank. RETURNS: the mapped value of shard `own`, contiguous.
at::Tensor map_parts(const Parameter& parameter, const std::vector<at::Tensor>& shards, size_t own,
                     const MatrixMap& map);

}  // namespace ranklab
