// QK-clip (Kimi K2, arXiv 2507.20534, section 2.1, the second half of MuonClip; Megatron-LM's --qk-clip). After an
// update, if a head's largest attention logit S in the step was above `threshold`, the weights of its queries and keys
// are scaled so that their products shrink by gamma = threshold / S: queries by gamma^alpha, keys by gamma^(1 - alpha).
// In latent attention this applies to the parts without rotary positions; the rotary part of a query is scaled by all
// of gamma, since its key is shared by all heads and stays as it is. Query heads that share a key head are clipped
// together, by the largest logit of any of them (as in Megatron-LM): a key scaled for one of them would change the
// logits of the others. Biases are scaled with their rows. If norms follow the query and key projections, the norms'
// weights are scaled instead; all heads may share one such weight. If the optimizer keeps main parameters, these are
// scaled and the parameters are copied from them. Nothing waits for the host: heads that need no clipping have factor
// 1. Cost: reads and writes the clipped weights once. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/nn/parameter.h"

namespace ranklab {

struct QkClipOptions {
  double alpha = 0.5;
  double threshold = 100;
  int64_t together = 1;  // number of neighbouring heads that are clipped together, by the largest logit of any of them
  std::vector<int64_t> fixed_layers = {};  // layers whose heads are left alone
};

// gamma of each head, [layers, heads], from the heads' largest logits; 1 where the logit is not above the threshold.
at::Tensor qk_clip_gammas(const at::Tensor& max_logits, const QkClipOptions& options);

class QkClip {
 public:
  // The scaling factor of a row: gamma^exponent, with gamma taken from the head at this index of the flattened gammas
  // (layer by layer).
  struct Row {
    int64_t head = 0;
    double exponent = 0;
  };
  // A range of elements of a weight or bias, flat, as an optimizer owns it, among the rows that this rank has.
  struct Piece {
    Parameter* parameter;   // or the shard of one
    at::Tensor master;      // the tensor that updates change if that is not the parameter itself; else undefined
    int64_t begin = 0;      // position of its first element in its first row
    int64_t row_width = 1;  // elements per row
    double offset = 0;  // the scaled number is the stored weight plus this (for norms whose weight is stored minus 1)
    std::vector<Row> rows;  // from the first to the last row of which the piece has elements; `begin` is in the first
  };
  QkClip(const std::vector<Piece>& pieces, const QkClipOptions& options);

  // REQUIRES: max_logits [layers, heads] is the maximum over all ranks. RETURNS: the number of heads whose weights were
  // scaled, as a tensor on the device.
  at::Tensor clip(const at::Tensor& max_logits) const;

 private:
  struct Part {
    Parameter* parameter;
    at::Tensor master;
    int64_t begin, row_width, first_row, rows;
    double offset;
  };
  QkClipOptions options_;
  std::vector<Part> parts_;
  at::Tensor heads_, exponents_;  // of the rows of all parts, one part after another
};

}  // namespace ranklab
