// Training runs of models with experts through the engine, put together as one rank would see them: every tensor from
// the ranks' shards by their Partition, experts from the ranks that own them. Elements that several ranks hold must
// have the same bits on all of them.
#pragma once
#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/runtime/hooks.h"
#include "core/runtime/train_config.h"

namespace ranklab {

using StepTensor = std::pair<int64_t, std::string>;  // step, global name

struct ExpertRecord {
  std::vector<StepMetrics> steps;
  int64_t parameters = 0;
  std::map<StepTensor, at::Tensor> grads;                       // as the optimizer saw them
  std::map<StepTensor, at::Tensor> weights;                     // after each update
  std::map<std::pair<int64_t, int>, std::vector<double>> load;  // by step and layer: assignments to each expert
  std::map<std::pair<int64_t, int>, std::vector<double>> bias;
  std::vector<std::string> faults;
  std::vector<RankTrace> traces;
};

// Three layers of which two have 8 experts, hidden 32, fp64, SGD, no clipping, 3 steps of 16 sequences.
TrainConfig expert_config();
ExpertRecord train_experts(const TrainConfig& config);
// The same global batch on one rank, in the microbatches of all data-parallel ranks.
TrainConfig on_one_rank(TrainConfig config);

}  // namespace ranklab
