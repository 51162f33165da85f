// Checks what a run is expected to share with another run, mostly with that of one rank. Thread rule: main thread.
#pragma once
#include <algorithm>
#include <string>

#include "tests/support/training_record.h"

namespace ranklab {

// Tolerances relative to the largest element of a tensor, or to the number itself; 0: all bits must be equal.
struct Tolerance {
  double first = 0;      // until the first step's update
  double later = first;  // after it
  double loss = later;
  // For the gradient's norm: each layout adds its squares in a different order.
  double norm = std::max(later, 1e-12);
  // For weights, a lower limit: AdamW divides a gradient by its own size, so the rounding error of a gradient that
  // nearly cancels counts as much as a large gradient.
  double weights = first;
};

// All bits of everything must be equal.
constexpr Tolerance kSameBits{.norm = 0};
// For fp64, where rounding can be distinguished from errors in logic.
constexpr Tolerance kRounding{.first = 1e-12};
// The same after AdamW's first step, in which gradients of few tokens nearly cancel.
constexpr Tolerance kRoundingOfAdamW{.first = 1e-12, .weights = 1e-10};

// Compares losses, norms, routing, gradients, weights and moments; `got` must have no faults.
void expect_same_training(const TrainingRecord& got, const TrainingRecord& want, const Tolerance& tolerance);
void expect_tensors_near(const StepTensors& got, const StepTensors& want, const Tolerance& tolerance,
                         const std::string& what);
// For runs whose arithmetic differs: compares only their curves.
void expect_losses_near(const TrainingRecord& got, const TrainingRecord& want, double tolerance);
void expect_curves_near(const TrainingRecord& got, const TrainingRecord& want, double loss, double norm);

}  // namespace ranklab
