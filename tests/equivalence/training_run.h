// A small training run in any layout, recorded as one rank would see it: tensors are put together from the shards by
// their Partition. Equal records mean equal training.
#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "core/model/model_config.h"
#include "core/parallel/grad_reducer.h"

namespace ranklab {

enum class TestedOptimizer { kAdamW, kSgd };

struct TrainingRun {
  ModelConfig model;
  int dp = 1;
  int tp = 1;
  bool sequence_parallel = false;
  int microbatches = 1;  // per dp rank
  int64_t global_batch = 8;
  at::ScalarType dtype = at::kDouble;
  TestedOptimizer optimizer = TestedOptimizer::kAdamW;
  GradAccumulation accumulation = GradAccumulation::kSequential;
  bool overlap = true;
  int steps = 10;
};

using Tensors = std::map<std::string, at::Tensor>;

struct StepRecord {
  double loss = 0;       // mean over the global batch's counted tokens
  double grad_norm = 0;  // before clipping
  Tensors grads;         // before clipping; padding rows included, at their place
  Tensors weights;       // after the update
};

struct TrainingRecord {
  at::Tensor logits;  // of the first batch before training, dropout off
  std::vector<StepRecord> steps;
  std::vector<std::string> faults;  // replicas that drifted, tokens that differ inside a model-parallel group, ...
};

TrainingRecord train(const TrainingRun& run);

}  // namespace ranklab
