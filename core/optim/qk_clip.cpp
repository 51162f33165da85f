#include "core/optim/qk_clip.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "core/sim/aten.h"
#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

// Multiplies each element, plus the offset, by the factor of its row. `begin` is the position of the first element in
// the first row; the first and the last row may be incomplete.
void scale_rows(const at::Tensor& flat, int64_t begin, int64_t width, const at::Tensor& factors, double offset) {
  int64_t at = 0, row = 0;
  const auto scale = [&](int64_t rows, int64_t elements) {
    const at::Tensor factor = factors.narrow(0, row, rows).unsqueeze(1);
    const at::Tensor scaled = flat.narrow(0, at, elements).view({rows, -1}).mul_(factor);
    if (offset != 0) scaled.add_((factor - 1) * offset);
    at += elements;
    row += rows;
  };
  if (begin > 0) scale(1, std::min(width - begin, flat.numel()));
  if (const int64_t whole = (flat.numel() - at) / width; whole > 0) scale(whole, whole * width);
  if (at < flat.numel()) scale(1, flat.numel() - at);
}

}  // namespace

at::Tensor qk_clip_gammas(const at::Tensor& max_logits, const QkClipOptions& options) {
  const int64_t layers = max_logits.size(0), heads = max_logits.size(1);
  at::Tensor largest = max_logits;
  if (options.together > 1) {
    const at::Tensor of_groups = max_logits.view({layers, -1, options.together}).amax({2}, true);
    largest = of_groups.expand({layers, -1, options.together}).reshape({layers, heads});
  }
  // Exactly 1 where nothing is clipped.
  at::Tensor gammas = at::full_like(largest, options.threshold).div_(largest.clamp_min(options.threshold));
  for (const int64_t layer : options.fixed_layers) gammas.select(0, layer).fill_(1);
  return gammas;
}

QkClip::QkClip(const std::vector<Piece>& pieces, const QkClipOptions& options) : options_(options) {
  if (pieces.empty()) return;
  const NoCostScope once;
  const MemoryScope memory(MemoryCategory::kBuffers);
  std::vector<int64_t> heads;
  std::vector<double> exponents;
  for (const Piece& piece : pieces) {
    parts_.push_back({piece.parameter, piece.master, piece.begin, piece.row_width, static_cast<int64_t>(heads.size()),
                      static_cast<int64_t>(piece.rows.size()), piece.offset});
    for (const Row& row : piece.rows) heads.push_back(row.head), exponents.push_back(row.exponent);
  }
  const at::Tensor& first = pieces.front().parameter->data;
  heads_ = at::tensor(heads, at::kLong).to(first.device());
  exponents_ = at::tensor(exponents, at::kDouble)
                   .to(at::TensorOptions(first.scalar_type() == at::kDouble ? at::kDouble : at::kFloat))
                   .to(first.device());
}

at::Tensor QkClip::clip(const at::Tensor& max_logits) const {
  const at::NoGradGuard no_grad;
  const MemoryScope memory(MemoryCategory::kBuffers);
  const at::Tensor gammas = qk_clip_gammas(max_logits, options_);
  if (!parts_.empty()) {
    at::Tensor factors = gammas.view({-1}).index_select(0, heads_).pow(exponents_);
    for (const Part& part : parts_) {
      const at::Tensor data = part.parameter->data.detach();
      const at::Tensor& weight = part.master.defined() ? part.master : data;
      factors = factors.to(weight.device());  // only once: moves them to the device of the weights that updates change
      scale_rows(weight.view({-1}), part.begin, part.row_width, factors.narrow(0, part.first_row, part.rows),
                 part.offset);
      if (part.master.defined()) data.copy_(weight);
    }
  }
  return gammas.lt(1).sum();
}

}  // namespace ranklab
