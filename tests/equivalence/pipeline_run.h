// Training runs through the engine whose gradients and weights are kept, to compare pipelines with runs without one.
#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "core/pipeline/schedule.h"
#include "core/runtime/hooks.h"
#include "core/runtime/train_config.h"

namespace ranklab {

// By tensor-parallel rank, step and global name.
using TensorKey = std::tuple<int, int64_t, std::string>;

struct PipelineRecord {
  Schedule schedule;
  std::vector<StepMetrics> steps;
  std::vector<double> validation;
  int64_t parameters = 0;
  std::string sample;
  std::map<TensorKey, at::Tensor> grads;    // as the optimizer saw them
  std::map<TensorKey, at::Tensor> weights;  // before each update, and after the last (step = train_iters)
  std::vector<std::string> faults;          // copies of a tensor that differ
  std::vector<RankTrace> traces;
  std::map<int, int64_t> peak_activation_bytes;  // of each global rank's first step
};

// Four layers, hidden 32, fp64, no clipping, two steps of 8 sequences; the rest as the defaults.
TrainConfig pipeline_config();
PipelineRecord train_pipeline(const TrainConfig& config);

}  // namespace ranklab
