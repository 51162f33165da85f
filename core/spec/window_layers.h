// Which layers have the window of attention, where some see all positions: one layer in so many (Gemma 2 and 3, arXiv
// 2408.00118, 2503.19786), or a pattern. Written as Megatron-LM writes --window-attn-skip-freq. Torch-free.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ranklab {

struct WindowLayers {
  int64_t skip_freq = 0;           // the last of every so many layers sees all positions; 0: all layers have the window
  std::vector<bool> pattern = {};  // instead, whether each layer has it, from the first; more layers repeat it

  bool all() const { return skip_freq == 0 && pattern.empty(); }
  bool has(int64_t layer) const;
  bool operator==(const WindowLayers&) const = default;
};

// "0", "6", or "[0]*21+[1]*7" with a 1 for each layer that has the window.
std::string window_layers_text(const WindowLayers& layers);
// Also of sums and repetitions inside parentheses: "([1]*3+[0])*2". Nothing where the text is none, or a pattern longer
// than any model.
std::optional<WindowLayers> parse_window_layers(const std::string& text);

// The shortest form that says this of so many layers. REQUIRES: one that has the window.
WindowLayers window_layers_of(const std::vector<bool>& layers);

}  // namespace ranklab
