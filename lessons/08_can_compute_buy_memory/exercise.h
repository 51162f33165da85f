// Lesson 8: which layers to compute again.
#pragma once
#include <algorithm>
#include <cstddef>
#include <span>

namespace ranklab::lesson {

// What one layer of a stack costs, measured. Bytes are those of one microbatch.
struct Layer {
  double input_bytes = 0;     // what stays of it when it is computed again
  double kept_bytes = 0;      // what stays of it when it is not
  double backward_bytes = 0;  // on top while backward is in this layer
  double forward_work = 0;    // of one forward, in FLOPs
};

// The fullest moment of a backward through the stack. Backward is in one layer at a time, the last one first; what
// comes after that layer is free by then, what comes before it is still held; and a layer that is computed again is
// there as a whole while backward is in it.
inline double peak_bytes(std::span<const Layer> layers, std::span<const bool> again) {
  double held = 0, peak = 0;
  for (size_t i = 0; i < layers.size(); ++i) {
    held += again[i] ? layers[i].input_bytes : layers[i].kept_bytes;
    const double whole = again[i] ? layers[i].kept_bytes : 0;
    peak = std::max(peak, held + whole + layers[i].backward_bytes);
  }
  return peak;
}

// What is computed twice.
inline double extra_work(std::span<const Layer> layers, std::span<const bool> again) {
  double work = 0;
  for (size_t i = 0; i < layers.size(); ++i) work += again[i] ? layers[i].forward_work : 0;
  return work;
}

}  // namespace ranklab::lesson

// Says for each layer (at most 12) whether it is computed again.
extern "C" void place(std::span<const ranklab::lesson::Layer> layers, double limit_bytes, std::span<bool> again);
