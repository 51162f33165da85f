// What the experts of a model did in one step, layer by layer: how many tokens each got, which were dropped, what the
// balancing losses were. After the update of the weights it is summed over all ranks that hold other tokens, moves the
// biases of auxiliary-loss-free balancing (Wang et al. 2024, arXiv 2408.15664) and becomes events (routing_event.h).
// Cost: a [layers, E + 3] all_reduce over tp, dp and pp a step. Thread rule: its rank's thread; end_step() is
// collective.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

#include "core/comm/rank_context.h"
#include "core/model/causal_lm.h"
#include "core/spec/model_config.h"

namespace ranklab {

class ExpertBook {
 public:
  ExpertBook(const ModelConfig& config, RankContext& context);

  // A forward of one microbatch through one layer: assignments of this rank's tokens to each expert [E].
  struct Forward {
    std::vector<int64_t> counts;
    int64_t dropped = 0;
    double aux_loss_sum = 0;  // with their coefficients
    double z_loss_sum = 0;
  };
  void add(int64_t layer, const Forward& forward);

  // The bias [E] of a layer that this rank holds, made at the first call; undefined without balancing by bias.
  at::Tensor bias(int64_t layer, at::ScalarType dtype);

  // Of the layers made so far, by their number; the biases themselves, for checkpoints.
  const std::map<int64_t, at::Tensor>& biases() const { return biases_; }

  ModelReport end_step();

 private:
  struct Layer {
    std::vector<double> counts;
    double dropped = 0, aux = 0, z = 0;
  };
  at::Tensor summed() const;
  void update_bias(int64_t layer, const Layer& total);
  void record(int64_t layer, const Layer& total) const;

  ModelConfig config_;
  RankContext& context_;
  int64_t num_layers_;  // MTP modules included
  std::map<int64_t, Layer> layers_;
  std::map<int64_t, at::Tensor> biases_;
};

}  // namespace ranklab
