// Which layers have something that others lack: all, all but every n-th, or a pattern. For attention windows (Gemma 2
// and 3, arXiv 2408.00118, 2503.19786) and for rotary positions (Yang et al. 2025, arXiv 2501.18795). Written as
// Megatron-LM writes --window-attn-skip-freq and --no-rope-freq. Torch-free.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ranklab {

constexpr int64_t kMostLayers = 1 << 16;  // that a model may have

struct LayerPattern {
  int64_t skip_freq = 0;           // every n-th layer lacks it; 0: all layers have it
  std::vector<bool> pattern = {};  // instead: true per layer that has it, from the first; repeated

  bool all() const { return skip_freq == 0 && pattern.empty(); }
  bool has(int64_t layer) const;
  bool operator==(const LayerPattern&) const = default;
};

// What a 1 of a pattern's text says of its layer: that it has the thing, or that it lacks it.
enum class PatternOne { kHas, kLacks };

// "0", "6", or "[0]*21+[1]*7".
std::string layer_pattern_text(const LayerPattern& layers, PatternOne one = PatternOne::kHas);
// Also accepts sums and repetitions inside parentheses: "([1]*3+[0])*2". Nothing when the text is invalid, or the
// pattern longer than any model.
std::optional<LayerPattern> parse_layer_pattern(const std::string& text, PatternOne one = PatternOne::kHas);

// The shortest form for these layers; 1 for 'skip_freq' when none has it.
LayerPattern layer_pattern_of(const std::vector<bool>& layers);

}  // namespace ranklab
