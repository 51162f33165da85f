// QK-clip (Kimi K2, arXiv 2507.20534, section 2.1, the second half of MuonClip; Megatron-LM's --qk-clip): after an
// update, where a head's largest attention logit S of the step was above `threshold`, the weights of its queries and
// keys are scaled so that their products shrink by gamma = threshold / S: queries by gamma^alpha, keys by
// gamma^(1 - alpha). Of latent attention these are the parts without rotary positions; the rotary part of a query takes
// all of gamma, since its key is one for all heads and stays as it is. Query heads that share a key head are clipped
// together, by the largest logit of any of them (as in Megatron-LM): a key scaled for one of them would change the
// logits of the others. Biases are scaled with their rows; where norms of queries and keys follow, the norms' weights
// are scaled instead, of which all heads may have one in common. Where an update has main parameters these are scaled,
// and the parameters are copies of them. Nothing waits for the host: factors of heads that need none are 1. Cost: reads
// and writes those weights once. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "core/nn/parameter.h"

namespace ranklab {

struct QkClipOptions {
  double alpha = 0.5;
  double threshold = 100;
  int64_t together = 1;                    // neighbouring heads that are clipped by the largest logit of any of them
  std::vector<int64_t> fixed_layers = {};  // whose heads are left alone
};

// gamma of each head, [layers, heads], from their largest logits; 1 where these are not above the threshold.
at::Tensor qk_clip_gammas(const at::Tensor& max_logits, const QkClipOptions& options);

class QkClip {
 public:
  // A factor is gamma^exponent, of the head with this index in the gammas, layer after layer.
  struct Row {
    int64_t head = 0;
    double exponent = 0;
  };
  // A range of elements of a weight or bias, of this rank's rows: flat, as an optimizer owns it.
  struct Piece {
    Parameter* parameter;   // or the shard of one
    at::Tensor master;      // what updates change, where that is not the parameter itself; else undefined
    int64_t begin = 0;      // its first element among those of `rows`
    int64_t row_width = 1;  // elements of a row
    double offset = 0;      // what scales is the weight plus this (norms that are stored minus 1)
    std::vector<Row> rows;  // of the first to the last row that it has elements of; begin is in the first
  };
  QkClip(const std::vector<Piece>& pieces, const QkClipOptions& options);

  // REQUIRES: max_logits [layers, heads] over all ranks. RETURNS: the number of heads whose weights were scaled, on the
  // device.
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
  at::Tensor heads_, exponents_;  // of all parts' rows, part after part
};

}  // namespace ranklab
