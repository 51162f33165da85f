// Which layers have a certain feature: all of them, all but every n-th, or those of a pattern. Used for attention
// windows (Gemma 2 and 3, arXiv 2408.00118, 2503.19786) and for rotary positions (Yang et al. 2025, arXiv 2501.18795).
// Written like Megatron-LM's --window-attn-skip-freq and --no-rope-freq. Torch-free.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ranklab {

constexpr int64_t kMostLayers = 1 << 16;  // the largest number of layers of a model

struct LayerPattern {
  int64_t skip_freq = 0;  // every n-th layer lacks the feature; 0: all layers have it
  // alternatively, one entry per layer, true if it has the feature; repeated for further layers
  std::vector<bool> pattern = {};

  bool all() const { return skip_freq == 0 && pattern.empty(); }
  bool has(int64_t layer) const;
  bool operator==(const LayerPattern&) const = default;
};

// What a 1 in a pattern's text means: that the layer has the feature, or that it lacks it.
enum class PatternOne { kHas, kLacks };

// "0", "6", or "[0]*21+[1]*7".
std::string layer_pattern_text(const LayerPattern& layers, PatternOne one = PatternOne::kHas);
// Also accepts sums and repetitions inside parentheses: "([1]*3+[0])*2". Returns nothing when the text is invalid, or
// the pattern is longer than any model.
std::optional<LayerPattern> parse_layer_pattern(const std::string& text, PatternOne one = PatternOne::kHas);

// The shortest form for these layers; `skip_freq` is 1 when no layer has the feature.
LayerPattern layer_pattern_of(const std::vector<bool>& layers);

}  // namespace ranklab
