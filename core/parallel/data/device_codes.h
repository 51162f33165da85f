// The amax, codes and numbers of one parameter's shards on a GPU, by its rounding kernels: what shard_codec.h computes
// in loops on a CPU, with the same bits, and without waiting for the device. Cost: one pass each; a shard that begins
// or ends within a row of scaling groups is first copied. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include "core/parallel/data/coded_parameter.h"
#include "core/precision/device_rounding.h"

namespace ranklab {

// Legend: G groups of the parameter, N elements of a shard, the first of which is the parameter's element `begin`.
class DeviceCodes {
 public:
  DeviceCodes(const CodedParameter& parameter, const DeviceRounding& device);

  // Writes amax [G] of the groups in which the shard [N] has elements, over these; leaves the others.
  void find_amax(const at::Tensor& shard, int64_t begin, const at::Tensor& amax) const;
  void make_scales(const at::Tensor& amax, const at::Tensor& scales) const;
  // shard [N] -> bytes [N].
  at::Tensor coded(const at::Tensor& shard, int64_t begin, const at::Tensor& scales) const;
  // The whole parameter's bytes -> fp32 [elements].
  at::Tensor decoded(const at::Tensor& codes, const at::Tensor& scales) const;

 private:
  struct Cover;
  template <typename Visit>
  void each_cover(const at::Tensor& shard, int64_t begin, const Visit& visit) const;

  const CodedParameter& parameter_;
  std::vector<CodedPart> parts_;
  const DeviceRounding& device_;
};

}  // namespace ranklab
