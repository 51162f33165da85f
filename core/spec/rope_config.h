// Configuration of rotary embeddings for sequences longer than those of training: YaRN, or a simpler scaling of all or
// some frequencies. Torch-free.
#pragma once
#include <cstdint>
#include <vector>

namespace ranklab {

// YaRN (Peng et al. 2023, arXiv 2309.00071): pairs with high frequencies keep them, and low frequencies are
// interpolated.
struct YarnConfig {
  double scaling_factor = 1.0;  // 1: plain rotary embedding
  int64_t original_seq_length = 4096;
  double beta_fast = 32;
  double beta_slow = 1;
  double mscale = 1.0;
  double mscale_all_dim = 1.0;    // also scales the scores of latent attention
  double attention_factor = 0.0;  // scales queries and keys; 0: derived from mscale and mscale_all_dim
  bool truncate = true;           // round the range of interpolated frequencies to whole pairs

  bool enabled() const { return scaling_factor != 1.0; }
  bool operator==(const YarnConfig&) const = default;
};

// Linear: position interpolation (Chen et al. 2023, arXiv 2306.15595), which divides every frequency by the factor.
// Dynamic: the base grows with the sequence once it is longer than the original length ("NTK-aware"; Peng et al.,
// section 3.1). Llama 3: frequencies whose wavelength exceeds the original length are divided, those with a far shorter
// wavelength are kept, and those between are interpolated (Llama 3.1's model code; arXiv 2407.21783, section 3.4.2, for
// why). LongRoPE (Ding et al. 2024, arXiv 2402.13753): one divisor per frequency, from a second list once the sequence
// is longer than the original length (Phi-3).
enum class RopeScalingKind { kNone, kLinear, kDynamic, kLlama3, kLongRope };

struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double factor = 8.0;
  int64_t original_seq_length = 8192;  // not for kLinear
  double low_freq_factor = 1.0;   // kLlama3: wavelengths above original_seq_length / low_freq_factor are divided, ...
  double high_freq_factor = 4.0;  // ... those below original_seq_length / high_freq_factor are kept
  // kLongRope: one divisor per pair, for sequences up to the original length and for longer ones. Queries and keys are
  // multiplied by `attention_factor`, which is derived from factor and length where it is 0.
  std::vector<double> short_factors = {}, long_factors = {};
  double attention_factor = 0.0;

  bool enabled() const { return kind != RopeScalingKind::kNone; }
  bool operator==(const RopeScaling&) const = default;
};

}  // namespace ranklab
