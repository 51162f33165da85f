// Which layers have the attention window, when others attend to all positions: all but every n-th (Gemma 2 and 3, arXiv
// 2408.00118, 2503.19786), or a pattern. Written as Megatron-LM writes --window-attn-skip-freq. Torch-free.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ranklab {

struct WindowLayers {
  int64_t skip_freq = 0;           // every n-th layer attends to all positions; 0: all layers have the window
  std::vector<bool> pattern = {};  // instead: true per layer with the window, from the first; repeated

  bool all() const { return skip_freq == 0 && pattern.empty(); }
  bool has(int64_t layer) const;
  bool operator==(const WindowLayers&) const = default;
};

// "0", "6", or "[0]*21+[1]*7" with a 1 for each layer that has the window.
std::string window_layers_text(const WindowLayers& layers);
// Also accepts sums and repetitions inside parentheses: "([1]*3+[0])*2". Nothing when the text is invalid, or the
// pattern longer than any model.
std::optional<WindowLayers> parse_window_layers(const std::string& text);

// The shortest form for these layers. REQUIRES: at least one has the window.
WindowLayers window_layers_of(const std::vector<bool>& layers);

}  // namespace ranklab
