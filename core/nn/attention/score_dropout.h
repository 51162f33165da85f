// Dropout of attention's probabilities (Vaswani et al. 2017, arXiv 1706.03762; Megatron-LM's --attention-dropout) whose
// mask does not depend on the layout: the pair (global sample, global head, query, key) of a layer draws its own number
// from a counter-based stream (core/base/numbers/philox.h), so data, tensor, sequence and context parallelism,
// pipelines and recomputation all drop the same pairs. Cost: about 5 ns per pair on a CPU; GPUs draw the numbers
// themselves (core/nn/device_random.h). Memory: the mask of a block. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace ranklab {

struct ScoreDropout {
  double p = 0;
  uint64_t seed = 0;
  std::string layer_name = {};
  uint64_t step = 0;
  int64_t first_sample = 0;  // the microbatch's first sample, as an index in the step's global batch
  int64_t first_head = 0;    // the first of this rank's heads; `heads` counts all heads of the model
  int64_t heads = 1;
  int64_t seq_length = 0;  // the model's longest sequence: the stride between queries
  // Step and first sample as a tensor on the device, where a pass is recorded (device_random.h); undefined: the fields
  // above apply.
  at::Tensor offset = {};

  // The mask: 0 with probability p, else 1 / (1 - p), for the given sequences of the microbatch, `own_heads` heads, and
  // the given positions: [sequences, heads, queries, keys] in the type and on the device of `like`.
  at::Tensor mask(int64_t first_sequence, int64_t sequences, int64_t own_heads, const std::vector<int64_t>& queries,
                  const std::vector<int64_t>& keys, const at::Tensor& like) const;

 private:
  at::Tensor drawn_on_device(int64_t first_sequence, int64_t sequences, int64_t own_heads,
                             const std::vector<int64_t>& queries, const std::vector<int64_t>& keys,
                             const at::Tensor& like) const;
};

}  // namespace ranklab
