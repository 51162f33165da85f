// Lesson 8: which layers to recompute.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>

namespace ranklab::lesson {

// The measured costs of one layer of a stack. Bytes are those of one microbatch.
struct Layer {
  double input_bytes = 0;     // what it keeps when it is recomputed
  double kept_bytes = 0;      // what it keeps when it is not
  double backward_bytes = 0;  // on top while backward is in this layer
  double forward_work = 0;    // of one forward, in FLOPs
};

// The peak of a backward through the stack. Backward is in one layer at a time, the last one first; later layers have
// been freed by then, earlier layers are still held; and a recomputed layer is held in full while backward is in it.
inline double peak_bytes(std::span<const Layer> layers, std::span<const bool> recompute) {
  double held = 0, peak = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    held += recompute[i] ? layers[i].input_bytes : layers[i].kept_bytes;
    const double whole = recompute[i] ? layers[i].kept_bytes : 0;
    peak = std::max(peak, held + whole + layers[i].backward_bytes);
  }
  return peak;
}

// The work that is recomputed.
inline double extra_work(std::span<const Layer> layers, std::span<const bool> recompute) {
  double work = 0;
  for (size_t i = 0; i < layers.size(); ++i) work += recompute[i] ? layers[i].forward_work : 0;
  return work;
}

}  // namespace ranklab::lesson

// Decides for each layer (at most 12) whether it is recomputed.
extern "C" void place(std::span<const ranklab::lesson::Layer> layers, double limit_bytes, std::span<bool> recompute);
