// The SwiGLU MLPs of several experts over tokens sorted by expert, block of rows by block of rows, for a CPU: blocks
// have the same few numbers of rows whatever the router decides, so that oneDNN writes the code of a product once and
// not at every step, and none of what lies between the products is ever there as a whole. Kept for backward: the rows
// and what the first product gave; the rest is computed again, block by block. Sums over rows are those of the blocks,
// one after another, also where the weights' gradients are computed later (DeferWeightGrads), so that bits do not
// depend on the schedule. Charged as the whole products are that a GPU does (grouped_linear.h). Legend: N rows by
// expert, H hidden, F width of an expert. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

namespace ranklab {

// Whether blocks serve: fp32 and fp64 on a CPU. Sums of blocks in 16 bits would be rounded once a block.
bool has_expert_blocks(const at::Tensor& rows_NH);

// rows [N, H] by expert, counts of each expert, weights [2F, H] (gate rows first) and [H, F] of each -> [N, H].
// REQUIRES: has_expert_blocks(rows).
at::Tensor expert_mlp(const at::Tensor& rows_NH, const std::vector<int64_t>& counts,
                      const std::vector<at::Tensor>& gate_up, const std::vector<at::Tensor>& down);

// How the rows of an expert are cut: [begin, rows] of each block.
struct ExpertBlock {
  size_t expert = 0;
  int64_t begin = 0;
  int64_t rows = 0;
};
std::vector<ExpertBlock> expert_blocks(const std::vector<int64_t>& counts, int64_t bytes_of_a_row);

}  // namespace ranklab
