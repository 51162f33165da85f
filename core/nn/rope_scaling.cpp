#include "core/nn/rope_scaling.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "core/sim/aten.h"
#include "core/sim/op_observer.h"

namespace ranklab {
namespace {

// Returns theta itself up to the original length.
double stretched_base(int64_t head_dim, double theta, const RopeScaling& s, int64_t seq_length) {
  const auto original = static_cast<double>(s.original_seq_length), width = static_cast<double>(head_dim);
  const double length = std::max(static_cast<double>(seq_length), original);
  return theta * std::pow(s.factor * length / original - (s.factor - 1), width / (width - 2));
}

at::Tensor llama3_frequencies(const at::Tensor& plain, const RopeScaling& s) {
  const auto length = static_cast<double>(s.original_seq_length);
  const at::Tensor turns = plain * (length / (2 * std::numbers::pi));  // full rotations within the original length
  // With equal factors there are no frequencies between the kept and the stretched ones (Llama 4).
  const at::Tensor kept = s.low_freq_factor == s.high_freq_factor
                              ? turns.ge(s.low_freq_factor).to(turns.scalar_type())
                              : ((turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor)).clamp(0, 1);
  return plain / s.factor * (1 - kept) + plain * kept;
}

RopeTable table_of(int64_t length, const RopeShape& shape, const RopeScaling& scaling,
                   const at::TensorOptions& options) {
  const double scale = scaling.kind == RopeScalingKind::kLongRope ? long_rope_scale(scaling) : 1.0;
  return make_rope_table(length, scaled_frequencies(shape.rotary_dim, shape.theta, scaling, length),
                         shape.unrotated_dim, scale, options);
}

class DynamicRope final : public RopeLengths {
 public:
  DynamicRope(int64_t longest, const RopeShape& shape, const RopeScaling& scaling, at::TensorOptions options)
      : longest_(longest),
        shape_(shape),
        scaling_(scaling),
        options_(std::move(options)),
        last_length_(longest),
        last_(make(longest)) {}

  RopeTable of(int64_t seq_length) override {
    // All sequences up to the original length share a table.
    const int64_t length = std::max(seq_length, std::min(scaling_.original_seq_length, longest_));
    if (length == last_length_) return last_;
    last_ = make(length);
    last_length_ = length;
    return last_;
  }

 private:
  RopeTable make(int64_t length) const { return table_of(length, shape_, scaling_, options_); }

  int64_t longest_;
  RopeShape shape_;
  RopeScaling scaling_;
  at::TensorOptions options_;
  int64_t last_length_;
  RopeTable last_;
};

class LongRope final : public RopeLengths {
 public:
  LongRope(int64_t longest, const RopeShape& shape, const RopeScaling& scaling, const at::TensorOptions& options)
      : original_(scaling.original_seq_length),
        short_(table_of(original_, shape, scaling, options)),
        long_(table_of(longest, shape, scaling, options)) {}

  RopeTable of(int64_t seq_length) override { return seq_length > original_ ? long_ : short_; }

 private:
  int64_t original_;
  RopeTable short_, long_;
};

std::shared_ptr<RopeLengths> lengths_of(int64_t longest, const RopeShape& shape, const RopeScaling& scaling,
                                        const at::TensorOptions& options) {
  if (scaling.kind == RopeScalingKind::kDynamic) return std::make_shared<DynamicRope>(longest, shape, scaling, options);
  if (scaling.kind == RopeScalingKind::kLongRope && longest > scaling.original_seq_length)
    return std::make_shared<LongRope>(longest, shape, scaling, options);
  return nullptr;
}

}  // namespace

double long_rope_scale(const RopeScaling& s) {
  if (s.attention_factor > 0) return s.attention_factor;
  return s.factor <= 1 ? 1 : std::sqrt(1 + std::log(s.factor) / std::log(static_cast<double>(s.original_seq_length)));
}

at::Tensor scaled_frequencies(int64_t head_dim, double theta, const RopeScaling& scaling, int64_t seq_length) {
  const NoCostScope no_cost;
  switch (scaling.kind) {
    case RopeScalingKind::kLinear:
      return rope_frequencies(head_dim, theta) / scaling.factor;
    case RopeScalingKind::kDynamic:
      return rope_frequencies(head_dim, stretched_base(head_dim, theta, scaling, seq_length));
    case RopeScalingKind::kLlama3:
      return llama3_frequencies(rope_frequencies(head_dim, theta), scaling);
    case RopeScalingKind::kLongRope: {
      const auto& divisors = seq_length > scaling.original_seq_length ? scaling.long_factors : scaling.short_factors;
      return rope_frequencies(head_dim, theta) / at::tensor(divisors, at::kDouble);
    }
    case RopeScalingKind::kNone:
      break;
  }
  return rope_frequencies(head_dim, theta);
}

RopeTable make_scaled_table(int64_t seq_length, const RopeShape& shape, const RopeScaling& scaling,
                            const at::TensorOptions& options) {
  const auto lengths = lengths_of(seq_length, shape, scaling, options);
  if (!lengths) return table_of(seq_length, shape, scaling, options);
  RopeTable table = lengths->of(seq_length);
  table.lengths = lengths;
  return table;
}

}  // namespace ranklab
