// A training run of any layout through the engine, seen as one rank would see it: gradients, weights and moments are
// assembled from the shards, pieces and stages that ranks hold (gathered_tensors.h). Equal records mean equal training.
// Tensors of ranks are on the device that RANKLAB_TEST_DEVICE names. Thread rule: main thread.
#pragma once
#include <functional>
#include <memory>

#include "core/pipeline/schedule.h"
#include "core/runtime/components.h"
#include "tests/support/gathered_tensors.h"

namespace ranklab {

struct TrainingRecord {
  Schedule schedule;
  std::vector<StepMetrics> steps;
  std::vector<double> validation;
  int64_t parameters = 0;
  std::string sample;
  at::Tensor logits;    // before training, without dropout; only if requested
  StepTensors grads;    // as the update used them, of the first and the last step
  StepTensors weights;  // before training (step -1) and after those steps; master weights, if there are any
  std::map<std::string, StepTensors> moments;                   // "exp_avg": after the last step
  std::map<int, int64_t> moment_elements;                       // ... that each rank keeps
  std::map<std::pair<int64_t, int>, std::vector<double>> load;  // by step and layer: assignments to each expert
  std::map<std::pair<int64_t, int>, std::vector<double>> bias;
  std::map<int, int64_t> peak_activation_bytes;  // of each rank's first step
  std::vector<std::string> faults;  // copies that differ, gaps, parameters that do not match their master weights
  std::vector<RankTrace> traces;

  std::vector<double> losses() const;
  std::vector<double> norms() const;
};

struct RecordOptions {
  std::shared_ptr<DataProvider> data = nullptr;    // null: the configuration's
  std::shared_ptr<ModelProvider> model = nullptr;  // null: the configuration's
  bool logits = false;                             // REQUIRES: no pipeline
  int64_t vocab_size =
      0;  // 0: the configuration's, which the byte tokenizer needs 256 of; data of one's own may do with less
  // Null: the ranks are threads on the device that RANKLAB_TEST_DEVICE names; else the configuration's backend and
  // device, and this world.
  std::function<std::unique_ptr<World>(int size)> make_world = nullptr;
};

TrainingRecord record_training(TrainConfig config, const RecordOptions& options = {});

}  // namespace ranklab
