// A model of lesson 7 trained for two steps on one rank, with every byte counted. Thread rule: one run at a time.
#pragma once
#include <cstdint>

#include "lessons/07_where_does_memory_go/exercise.h"

namespace ranklab::lesson {

constexpr int64_t kMemorySequence = 128, kMemoryBatch = 4;  // of a microbatch

struct MeasuredModel {
  int64_t parameters = 0;
  int64_t parameter_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;  // after a step
  int64_t peak_bytes = 0, peak_activations = 0;
  int64_t layer_bytes = 0;  // kept by a layer for its backward
};

MeasuredModel measure_model(const Model& model);

}  // namespace ranklab::lesson
