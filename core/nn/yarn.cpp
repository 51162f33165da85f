#include "core/nn/yarn.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

// The index (as a real number) of the pair that makes `rotations` full rotations within `length` positions.
double pair_of(double rotations, int64_t head_dim, double theta, int64_t length) {
  return static_cast<double>(head_dim) * std::log(static_cast<double>(length) / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(theta));
}

}  // namespace

double yarn_mscale(double scaling_factor, double mscale) {
  return scaling_factor <= 1 ? 1.0 : 0.1 * mscale * std::log(scaling_factor) + 1.0;
}

double yarn_table_scale(const YarnConfig& yarn) {
  if (yarn.attention_factor > 0) return yarn.attention_factor;
  return yarn_mscale(yarn.scaling_factor, yarn.mscale) / yarn_mscale(yarn.scaling_factor, yarn.mscale_all_dim);
}

at::Tensor yarn_frequencies(int64_t head_dim, double theta, const YarnConfig& yarn) {
  const NoCostScope no_cost;
  const at::Tensor plain = rope_frequencies(head_dim, theta);
  if (!yarn.enabled()) return plain;
  const int64_t length = yarn.original_seq_length;
  double low = pair_of(yarn.beta_fast, head_dim, theta, length);
  double high = pair_of(yarn.beta_slow, head_dim, theta, length);
  if (yarn.truncate) low = std::floor(low), high = std::ceil(high);
  low = std::max(0.0, low);
  high = std::min(static_cast<double>(head_dim - 1), high);
  if (high == low) high += 0.001;  // avoids a division by zero, as in the published code
  const at::Tensor stretched = ((at::arange(head_dim / 2, plain.options()) - low) / (high - low)).clamp(0, 1);
  return plain / yarn.scaling_factor * stretched + plain * (1 - stretched);
}

RopeTable make_yarn_table(int64_t seq_length, const RopeShape& shape, const YarnConfig& yarn,
                          const at::TensorOptions& options) {
  return make_rope_table(seq_length, yarn_frequencies(shape.rotary_dim, shape.theta, yarn), shape.unrotated_dim,
                         yarn_table_scale(yarn), options);
}

double yarn_softmax_scale(int64_t query_head_dim, const YarnConfig& yarn) {
  const double mscale = yarn_mscale(yarn.scaling_factor, yarn.mscale_all_dim);
  return mscale * mscale / std::sqrt(static_cast<double>(query_head_dim));
}

}  // namespace ranklab
