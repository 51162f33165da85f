// The SwiGLU MLPs of several experts on tokens sorted by expert, in blocks of rows, for CPUs. Whatever the routing,
// blocks have only a few different row counts, so that oneDNN generates the code of a product once instead of in every
// step. Intermediates that are not saved exist only for one block at a time. Saved for backward: the rows and the first
// product's output; the rest is recomputed block by block. Sums over rows are accumulated block after block, also when
// the weight gradients are deferred (DeferWeightGrads), so that the result does not depend on the schedule. The virtual
// clock is charged for a GPU's products of all rows (grouped_linear.h). Legend: N rows sorted by expert, H hidden, F
// width of an expert. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace ranklab {

// Whether blocks can be used: fp32 and fp64 on a CPU. In 16 bits the sums would be rounded after every block.
bool has_expert_blocks(const at::Tensor& rows_NH);
// Whether the virtual clock charges for what blocks cost; a device computes rows of these types in another way.
bool is_charged_as_blocks(const at::Tensor& rows_NH);

// rows [N, H] sorted by expert, counts and weights [2F, H] (gate rows first) and [H, F] per expert -> [N, H]. REQUIRES:
// has_expert_blocks(rows).
at::Tensor expert_mlp(const at::Tensor& rows_NH, const std::vector<int64_t>& counts,
                      const std::vector<at::Tensor>& gate_up, const std::vector<at::Tensor>& down);

// A block of an expert's rows: [begin, begin + rows).
struct ExpertBlock {
  size_t expert = 0;
  int64_t begin = 0;
  int64_t rows = 0;
};
std::vector<ExpertBlock> expert_blocks(const std::vector<int64_t>& counts, int64_t bytes_of_a_row);

}  // namespace ranklab
