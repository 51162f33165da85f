// Lesson 13, solution. ZeRO-3 shards all states over all GPUs, so only activations are left to fit: the least tp for
// which they do, since each doubling halves the matrices and exposes more of its all-reduces, and for which there is a
// sequence for each replica. Stages would add a bubble, recomputation a third of the work: neither is needed.
#include "exercise.h"

using namespace ranklab::lesson;

extern "C" void choose_layout(const Problem& p, Layout& layout) {
  const double states = 16 * p.parameters / p.gpus;
  const double kept = 25.0 * p.sequence_length * p.hidden * p.layers;
  layout.zero_stage = 3;
  for (layout.tp = 1; layout.tp < p.gpus_per_node; layout.tp *= 2) {
    const bool divides = p.sequences % (p.gpus / layout.tp) == 0;
    if (divides && states + kept / layout.tp < 0.9 * p.memory_bytes) return;
  }
}
