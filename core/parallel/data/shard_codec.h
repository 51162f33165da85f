// Encodes the shards of a unit's parameters as bytes when quantized weights are gathered in 8 bits (--fp8-param-gather;
// PyTorch FSDP2's fp8 all-gather, Megatron-LM's --fp8-param-gather): quantized weights become 8-bit codes, and the
// others are unchanged. Ranks agree on the amax of each scaling group after each update, so that every rank knows all
// scales and a shard's boundary may lie anywhere in a group; the gathered weight equals the whole weight quantized in
// its groups. Cost: one all_reduce of a number per group after an update; a pass over the shard and one over the whole
// per gather. Thread rule: its rank's thread; every member of the group agrees.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/comm/communicator.h"
#include "core/parallel/data/coded_parameter.h"
#include "core/precision/block_scale.h"
#include "core/precision/device_rounding.h"

namespace ranklab {

class ShardCodec {
 public:
  // For a bucket of `elements` elements of `type`, of which each member has an equal shard.
  ShardCodec(std::vector<CodedParameter> parameters, int64_t elements, at::ScalarType type, Communicator& group);

  // Call after the shard [elements / size] has changed. Collective.
  void agree(const at::Tensor& shard);
  at::Tensor pack(const at::Tensor& shard) const;             // rows()[rank] bytes
  const std::vector<int64_t>& rows() const { return rows_; }  // number of bytes of each member
  // Restores the whole bucket [elements] from all members' bytes; padding is not filled.
  at::Tensor unpack(const at::Tensor& bytes) const;

 private:
  // Calls visit(parameter, begin, end, offset) for each parameter of which a member has elements: it has [begin, end)
  // of the parameter, and they begin at `offset` in the member's shard.
  template <typename Visit>
  void each_piece(int member, const Visit& visit) const;
  // Visits runs of consecutive elements of a parameter that lie in one group.
  template <typename Visit>
  void each_run(size_t parameter, int64_t begin, int64_t end, const Visit& visit) const;
  // On a GPU, by its kernels.
  void agree_on(const DeviceRounding& device, const at::Tensor& shard);
  at::Tensor packed_by(const DeviceRounding& device, const at::Tensor& shard) const;
  void unpack_by(const DeviceRounding& device, const at::Tensor& bytes, const at::Tensor& whole) const;
  at::Tensor of_parameter(size_t parameter, const at::Tensor& per_group) const;
  // On a CPU.
  void find_amax(const float* numbers);  // the amax of each group, over this member's shard
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
  std::vector<BlockScale> scales_;  // set by agree()
  at::Tensor device_scales_;        // the same on a GPU, [groups]
};

}  // namespace ranklab
