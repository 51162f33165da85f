// The kernels and collectives of one action on one stage: F, BW, or B and W apart. Attention and experts have walks of
// their own (attention_walk.h, expert_walk.h). Thread rule: one thread.
#pragma once
#include "core/plan/layer_walk.h"

namespace ranklab {

class StageWalk {
 public:
  // `part`: of a chain of shape.num_stages(). The shape and the visitor outlive this.
  StageWalk(const StepShape& shape, int part, StepVisitor& visitor, LayerWalk::Arrived arrived = {});

  void forward();
  void backward() { run_backward(BackwardHalf::kWhole); }  // BW
  void input_grad() { run_backward(BackwardHalf::kInput); }
  void weight_grad() { run_backward(BackwardHalf::kWeight); }

 private:
  void run_backward(BackwardHalf half);
  void layer_forward(int64_t layer, bool adds_branch);
  void layer_backward(int64_t layer, bool first_norm_has_residual);
  void mlp_forward();
  void mlp_backward();
  void embedding_forward();
  void look_up();
  void embedding_backward();
  void head_forward();
  void head_backward();
  void loss_forward();
  void loss_backward();
  void prediction_forward(int64_t module);
  void prediction_backward(int64_t module);

  const StepShape& s_;
  int part_;
  LayerWalk w_;
  int64_t hidden_;
};

}  // namespace ranklab
