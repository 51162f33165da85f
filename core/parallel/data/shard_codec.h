// The shards of a unit's parameters as bytes, when quantized weights are gathered in 8 bits (--fp8-param-gather;
// PyTorch FSDP2's fp8 all-gather, Megatron-LM's --fp8-param-gather): a code for each element of a quantized weight, the
// others as they are. Ranks agree on the largest magnitudes of the groups after each update, so that every rank knows
// all scales and a shard's border may lie anywhere in a group; what is gathered is the whole weight rounded in its
// groups. Cost: one all_reduce of a number a group after an update; a pass over the shard for each gather, one over the
// whole. Thread rule: its rank's thread; every member of the group agrees.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/comm/communicator.h"
#include "core/precision/block_scale.h"
#include "core/precision/quantize.h"

namespace ranklab {

// One parameter [rows, cols] of the bucket. REQUIRES of its precision: check_recipe()'s of `gather`.
struct CodedParameter {
  int64_t offset = 0;  // of its first element in the bucket
  int64_t elements = 0;
  int64_t cols = 1;
  std::vector<int64_t> row_parts = {};  // fused matrices below each other, whose groups begin anew
  TensorPrecision precision = {};       // not quantized: its elements travel as they are
};

class ShardCodec {
 public:
  // A bucket of so many elements of `type`, of which each member has an equal part.
  ShardCodec(std::vector<CodedParameter> parameters, int64_t elements, at::ScalarType type, Communicator& group);

  // After the shard [elements / size] has changed. Collective.
  void agree(const at::Tensor& shard);
  at::Tensor pack(const at::Tensor& shard) const;             // bytes, as many as rows()[rank]
  const std::vector<int64_t>& rows() const { return rows_; }  // bytes of each member
  // Of all members' bytes the whole bucket [elements]; padding is not filled.
  at::Tensor unpack(const at::Tensor& bytes) const;

 private:
  // Elements [begin, end) of a parameter that one member has.
  template <typename Visit>
  void each_piece(int member, const Visit& visit) const;
  // Consecutive elements of a parameter in one group.
  template <typename Visit>
  void each_run(size_t parameter, int64_t begin, int64_t end, const Visit& visit) const;
  void find_amax(const float* numbers);  // of each group, in this member's shard
  void write(const at::Tensor& shard, const float* numbers, std::byte* out) const;
  void read(const at::Tensor& bytes, const at::Tensor& whole) const;

  std::vector<CodedParameter> parameters_;
  std::vector<size_t> first_group_;  // of each parameter
  int64_t elements_;
  at::ScalarType type_;
  Communicator& group_;
  std::vector<int64_t> rows_;
  size_t groups_ = 0;
  std::vector<float> amax_;
  std::vector<BlockScale> scales_;  // of agree()
};

}  // namespace ranklab
