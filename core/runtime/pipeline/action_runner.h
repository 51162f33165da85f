// Executes one rank's actions of a pipeline schedule in order (F, B, W, BW, or an overlapped pair, as its F and then
// its BW); each waits only for what it needs. A stage's activation is held from F until W (or BW) is done. Cost: one
// message of [S, B, H] per stage boundary between ranks, microbatch and direction. Thread rule: its rank's thread.
#pragma once
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "core/parallel/deferred_grads.h"
#include "core/runtime/components.h"
#include "core/runtime/pipeline/replayed_pass.h"
#include "core/runtime/pipeline/replayed_stages.h"
#include "core/runtime/pipeline/stage_messages.h"

namespace ranklab {

class ActionRunner {
 public:
  struct Options {
    double loss_scale = 1;  // by which each loss is multiplied before its backward
    double scale = 1;       // the loss scaler's part of it
    StageResult result = StageResult::kLoss;
    // If not null, runs the passes: those of a rank that has the whole model, or a pipeline rank's.
    ReplayedPass* replayed = nullptr;
    ReplayedStages* replayed_stages = nullptr;
  };
  // All but the boundary and the options outlive this. `whole`: the training schedule, which defines the model's
  // stages; `schedule` may contain only its forwards.
  ActionRunner(StepContext& c, const Schedule& whole, const Schedule& schedule, const std::vector<Batch>& batches,
               BoundaryTensor boundary, const Options& options);

  void run();
  // Sum of the losses of all microbatches. Read it only at the end: reading synchronizes with the device.
  double loss_sum() const;
  const at::Tensor& result() const { return result_; }  // of the last microbatch, on the rank of the last stage

 private:
  class Span;
  // A microbatch in a stage, between its F and its W.
  struct Flight {
    at::Tensor input, output;
    WeightGradQueue weights;
  };

  void run_pair(const Action& a);
  void run_replayed(int microbatch);
  void run_replayed(const Action& a);
  void take_output(int stage, int microbatch, const at::Tensor& output);
  void run_forward(int stage, int microbatch);
  void run_backward(int stage, int microbatch, bool whole);
  void run_weight_grad(int stage, int microbatch);
  void land(int stage, int microbatch);
  void begin_observed_pass();
  void count_flights();
  double loss_scale_of(int microbatch) const;
  int local(int stage) const;
  bool is_pipeline() const { return schedule_.num_stages() > 1; }

  StepContext& c_;
  const Schedule& schedule_;
  int rank_;
  std::vector<int> stages_;
  const std::vector<Batch>& batches_;
  Options options_;
  StageMessages messages_;
  std::map<std::pair<int, int>, Flight> flights_;  // by stage and microbatch
  std::array<Span*, 2> spans_ = {};                // the open span of each of two interleaved pieces
  size_t piece_ = 0;                               // the running piece
  std::vector<at::Tensor> losses_;
  at::Tensor result_;
};

}  // namespace ranklab
