// What one layer keeps for its backward, in elements on one rank, for the tensors that core/model keeps: norms and
// activation functions of MLPs are computed again, attention keeps no score matrix (Korthikanti et al. 2022, arXiv
// 2205.05198, for another choice of them). Experts are counted with equally many tokens. Thread rule: pure.
#pragma once
#include <cstdint>

#include "core/plan/step_shape.h"

namespace ranklab {

struct LayerMemory {
  int64_t kept = 0;           // of a microbatch, from F to B
  int64_t deferred = 0;       // kept between B and W of a split backward: what the weights' products need
  int64_t row_gradients = 0;  // ... the gradients of row-parallel layers' outputs, at all positions
  int64_t temporary = 0;      // at the busiest moment of its backward, on top
  int64_t at_products = 0;    // ... when the gradients of its widest weights are made
  int64_t at_attention = 0;   // ... of attention's, at its end: on top of what is left then

  LayerMemory& operator+=(const LayerMemory& other);  // kept by both; the larger temporary
  // Of layers that are computed again in backward from this much: they are there one time, as if temporary.
  LayerMemory again(int64_t input) const;
};

// Of a layer of the model; MTP modules count on from its last.
LayerMemory layer_memory(const StepShape& shape, int64_t layer);
// One norm and the layer behind it.
int64_t norm_elements(const StepShape& shape, int64_t width);
int64_t dropout_elements(const StepShape& shape);

}  // namespace ranklab
