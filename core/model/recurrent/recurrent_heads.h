// Functions shared by layers with a recurrence over positions (Gated DeltaNet, Mamba-2). A recurrence needs whole
// sequences, so under context parallelism all_to_alls exchange heads for positions around it, whatever exchange the
// other layers use: two all_to_alls in each direction. Where packed documents attend separately, the state is reset
// between them. Legend: S positions, B sequences. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/model/forward_context.h"
#include "core/nn/attention/attention_cache.h"
#include "core/parallel/context/context_parallel.h"

namespace ranklab {

// The document number of each position, [S, B] int64; undefined: each sequence is one document.
at::Tensor document_of_positions(const ForwardContext& context, int64_t positions);

// x [S of this rank, B, sum of widths], whose parts hold the heads of all cp ranks, rank after rank -> [S of all ranks,
// B, sum of widths / ranks], with this rank's heads of each part.
at::Tensor own_heads_of_all_positions(const at::Tensor& x, const std::vector<int64_t>& widths,
                                      const ContextParallel& cp);
// The corresponding rows of a weight, whose parts have these numbers of rows.
at::Tensor own_head_rows(const at::Tensor& weight, const std::vector<int64_t>& widths, const ContextParallel& cp);

// The recurrent state of such a layer: the last inputs of its short convolution of `kernel` positions, `width` values
// each, and one matrix per head. Uninitialized until the first text begins.
struct MemorySizes {
  int64_t kernel, width, heads, rows, columns;
};
AttentionCache recurrent_cache(int64_t sequences, const MemorySizes& sizes, const at::TensorOptions& options);
// At the first position of a text nothing is remembered.
void begin_text(AttentionCache& cache);

}  // namespace ranklab
