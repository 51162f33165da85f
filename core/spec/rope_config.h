// Rotary positions for sequences longer than those that a model was trained on, as numbers: YaRN, or one of the plainer
// stretches of all or some frequencies. Torch-free.
#pragma once
#include <cstdint>
#include <vector>

namespace ranklab {

// YaRN (Peng et al. 2023, arXiv 2309.00071): pairs that turn fast keep their frequency, slow ones are stretched.
struct YarnConfig {
  double scaling_factor = 1.0;  // 1: plain rotary embedding
  int64_t original_seq_length = 4096;
  double beta_fast = 32;
  double beta_slow = 1;
  double mscale = 1.0;
  double mscale_all_dim = 1.0;    // also of the scores of latent attention
  double attention_factor = 0.0;  // of queries and keys; 0: it follows from mscale and mscale_all_dim
  bool truncate = true;           // the pairs between which frequencies are mixed are whole ones

  bool enabled() const { return scaling_factor != 1.0; }
  bool operator==(const YarnConfig&) const = default;
};

// Linear: position interpolation (Chen et al. 2023, arXiv 2306.15595), every frequency divided by the factor. Dynamic:
// the base grows with the sequence once it is longer than the original length ("NTK-aware"; Peng et al., section 3.1).
// Llama 3: frequencies whose wave is longer than the original length are divided, those far shorter kept, those between
// mixed (Llama 3.1's model code; arXiv 2407.21783, section 3.4.2, for why). LongRoPE (Ding et al. 2024, arXiv
// 2402.13753): a divisor for each frequency, other ones once the sequence is longer than the original length (Phi-3).
enum class RopeScalingKind { kNone, kLinear, kDynamic, kLlama3, kLongRope };

struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double factor = 8.0;
  int64_t original_seq_length = 8192;  // not of kLinear
  double low_freq_factor = 1.0;        // of kLlama3: waves longer than the original length over this are divided, ...
  double high_freq_factor = 4.0;       // ... shorter than it over this kept
  // Of kLongRope: a number a pair, of sequences up to the original length and of longer ones; queries and keys are
  // multiplied with the other, which follows from factor and length where it is 0.
  std::vector<double> short_factors = {}, long_factors = {};
  double attention_factor = 0.0;

  bool enabled() const { return kind != RopeScalingKind::kNone; }
  bool operator==(const RopeScaling&) const = default;
};

}  // namespace ranklab
