// The kernels and collectives of one action on one stage: F, BW, or B and W apart. Attention and experts have walks of
// their own (attention_walk.h, expert_walk.h). Thread rule: one thread.
#pragma once
#include <string>
#include <vector>

#include "core/plan/layer_walk.h"
#include "core/plan/unit_walk.h"

namespace ranklab {

class StageWalk {
 public:
  // `part`: of a chain of shape.num_stages(). The shape, the visitor and the units outlive this. `units`: what brings
  // parameters that are away between uses; null: none are.
  StageWalk(const StepShape& shape, int part, StepVisitor& visitor, LayerWalk::Arrived arrived = {},
            UnitWalk* units = nullptr);

  void forward();
  void backward() { run_backward(BackwardHalf::kWhole); }  // BW
  void input_grad() { run_backward(BackwardHalf::kInput); }
  void weight_grad() { run_backward(BackwardHalf::kWeight); }

 private:
  void run_backward(BackwardHalf half);
  // Around what uses these units; `next` is the first of what comes after it.
  template <typename Use>
  void with(const std::vector<std::string>& units, const std::string& next, const Use& use) {
    if (units_ != nullptr) units_->enter(units, next);
    use();
    if (units_ != nullptr) units_->leave(units);
  }
  std::vector<std::string> last_units() const;
  int wide() const { return s_.element_bytes() == 2 ? 2 : 1; }  // the loss is computed in fp32 at least
  std::string layer_unit(int64_t layer) const;                  // empty: the stage has no such layer
  // Layers that are there as a whole, or one that keeps all it needs.
  struct Piece {
    int64_t first = 0, end = 0;
    bool again = false;
  };
  std::vector<Piece> pieces() const;
  std::vector<std::string> units_of(const Piece& piece) const;
  void piece_again(const Piece& piece, bool has_branch);
  void layer_forward(int64_t layer, bool adds_branch);
  void layer_backward(int64_t layer);
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
  UnitWalk* units_;
  LayerWalk w_;
  int64_t hidden_;
};

}  // namespace ranklab
