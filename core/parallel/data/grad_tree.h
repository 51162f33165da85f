// Adds the gradients of microbatches in a balanced binary tree over the microbatch index instead of one after another.
// It is the tree that the communicator uses over dp rank, so with power-of-two sizes dp 8, dp 4 x 2 microbatches and 8
// microbatches on one rank add the same numbers in the same order: the same bits. A binary counter does it: level l
// holds the sum of the last 2^l microbatches. Memory: ceil(log2 microbatches) extra copies of the gradients. Rounding
// grows with log2 of the count instead of the count. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <span>

namespace ranklab {

int grad_tree_levels(int num_microbatches);

// Folds the gradient of microbatch `index` in. levels: grad_tree_levels() tensors like `grad`. On the last microbatch
// `total` receives the sum of all. REQUIRES: called for index 0, 1, ... in order.
void fold_into_tree(const at::Tensor& grad, int index, bool is_last, std::span<at::Tensor> levels, at::Tensor& total);

}  // namespace ranklab
