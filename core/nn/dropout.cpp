#include "core/nn/dropout.h"

#include "core/base/numbers/philox.h"
#include "core/nn/device_random.h"
#include "core/nn/kernels/kernel_path.h"
#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

// `offset`: the context's step and first sample.
at::Tensor drawn_on_device(const at::Tensor& x_SBH, const std::string& layer_name, double p,
                           const DropoutContext& context, const at::Tensor& offset) {
  const int64_t seq = x_SBH.size(0), batch = x_SBH.size(1), hidden = x_SBH.size(2);
  const DeviceRandom random(context.seed, layer_name, offset);
  const auto options = offset.options();
  const at::Tensor position_S = device_positions(context.positions.get(), context.first_position, seq, options);
  const at::Tensor sample_B = first_sample_of(offset) + at::arange(batch, options);
  return random.dropout_mask((sample_B * context.seq_length + position_S.unsqueeze(1)) * hidden, hidden,
                             hidden % 4 == 0, p, x_SBH);
}

}  // namespace

at::Tensor dropout_mask(const at::Tensor& x_SBH, const std::string& layer_name, double p,
                        const DropoutContext& context) {
  const NoCostScope no_cost;  // a GPU draws the mask inside the multiplication's kernel
  if (context.offset.defined()) return drawn_on_device(x_SBH, layer_name, p, context, context.offset);
  if (x_SBH.is_cuda()) {
    const at::Tensor offset = random_offset(context.step, context.first_sample, x_SBH.device());
    return drawn_on_device(x_SBH, layer_name, p, context, offset);
  }
  const int64_t seq = x_SBH.size(0), batch = x_SBH.size(1), hidden = x_SBH.size(2);
  const RandomStream stream(context.seed, RandomPurpose::kDropout, layer_name, context.step);
  at::Tensor mask = at::empty({seq, batch, hidden}, at::TensorOptions().dtype(at::kFloat).device(host_side(x_SBH)));
  if (mask.is_meta()) return mask.to(x_SBH.options());
  float* row = mask.mutable_data_ptr<float>();
  const auto keep_scale = static_cast<float>(1.0 / (1.0 - p));
  for (int64_t s = 0; s < seq; ++s) {
    const int64_t at = context.first_position + s;
    const int64_t position = context.positions != nullptr ? context.positions->at(static_cast<size_t>(at)) : at;
    for (int64_t b = 0; b < batch; ++b, row += hidden) {
      const int64_t token = (context.first_sample + b) * context.seq_length + position;
      stream.fill_uniform(static_cast<uint64_t>(token * hidden), {row, static_cast<size_t>(hidden)});
      for (int64_t h = 0; h < hidden; ++h) row[h] = static_cast<double>(row[h]) < p ? 0.0f : keep_scale;
    }
  }
  return mask.to(x_SBH.options());
}

at::Tensor dropout(const at::Tensor& x_SBH, const std::string& layer_name, double p, const DropoutContext& context) {
  return p > 0 ? x_SBH * dropout_mask(x_SBH, layer_name, p, context) : x_SBH;
}

}  // namespace ranklab
