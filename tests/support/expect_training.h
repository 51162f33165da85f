// What a run is expected to share with another one, mostly with one rank's. Thread rule: main thread.
#pragma once
#include <algorithm>
#include <string>

#include "tests/support/training_record.h"

namespace ranklab {

// Relative to the largest element of a tensor, or to the number itself; 0: the same bits.
struct Tolerance {
  double first = 0;      // until the first step's update
  double later = first;  // after it
  double loss = later;
  // Tolerance of the gradient's norm: each layout adds its squares in an order of its own.
  double norm = std::max(later, 1e-12);
  // At least, of weights: AdamW divides a gradient by its own size, so what rounding leaves of one that nearly cancels
  // counts as much as a large one.
  double weights = first;
};

// The same bits of everything.
constexpr Tolerance kSameBits{.norm = 0};
// fp64: rounding is told from logic.
constexpr Tolerance kRounding{.first = 1e-12};
// And after AdamW's first step, where gradients of few tokens nearly cancel.
constexpr Tolerance kRoundingOfAdamW{.first = 1e-12, .weights = 1e-10};

// Losses, norms, routing, gradients, weights and moments; no faults in `got`.
void expect_same_training(const TrainingRecord& got, const TrainingRecord& want, const Tolerance& tolerance);
void expect_tensors_near(const StepTensors& got, const StepTensors& want, const Tolerance& tolerance,
                         const std::string& what);
// For runs whose arithmetic differs: compares their curves alone.
void expect_losses_near(const TrainingRecord& got, const TrainingRecord& want, double tolerance);
void expect_curves_near(const TrainingRecord& got, const TrainingRecord& want, double loss, double norm);

}  // namespace ranklab
