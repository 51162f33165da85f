// Statistics of a model's experts in one step, per layer: tokens per expert, dropped tokens and balancing losses. After
// the optimizer update they are summed over all ranks that hold different tokens, update the biases of
// auxiliary-loss-free balancing (Wang et al. 2024, arXiv 2408.15664), and are traced as events (routing_event.h). On a
// GPU they are accumulated on the device, so that the host waits for them only once per step, unless they are traced or
// monitored (but passes that are replayed are neither). Cost: a [layers, E + 3] all_reduce over tp, dp and pp per step.
// Thread rule: its rank's thread; end_step() is collective.
#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "core/comm/rank_context.h"
#include "core/model/causal_lm.h"
#include "core/parallel/expert/routing.h"
#include "core/spec/model_config.h"

namespace ranklab {

// "layers.3.mlp.router.bias"
std::string name_of_bias(const ModelConfig& config, int64_t layer);

class ExpertBook {
 public:
  ExpertBook(const ModelConfig& config, RankContext& context);

  // One microbatch's forward through one layer: this rank's tokens, and the sums of the losses with their coefficients.
  struct Forward {
    const Routing& routing;
    bool recorded = false;  // the pass is recorded as a CUDA graph, in which the host reads nothing
    at::Tensor aux_loss_sum = {}, z_loss_sum = {};  // undefined: none
  };
  void add(int64_t layer, const Forward& forward);

  // The bias [E] of a layer that this rank holds, created by the first call; undefined without bias balancing.
  at::Tensor bias(int64_t layer, at::ScalarType dtype);

  // The biases created so far, by layer index. They share memory with the model's, so a checkpoint can be loaded into
  // them.
  const std::map<int64_t, at::Tensor>& biases() const { return biases_; }

  ModelReport end_step();

 private:
  struct Layer {
    std::vector<double> counts;
    double dropped = 0, aux = 0, z = 0;
  };
  bool stays_on_device(const Forward& forward) const;
  void add_on_device(int64_t layer, const Forward& forward);
  at::Tensor own() const;
  at::Tensor over_ranks(at::Tensor table) const;
  void update_biases(const at::Tensor& table);
  void record(int64_t layer, const Layer& total) const;

  ModelConfig config_;
  RankContext& context_;
  int64_t num_layers_;               // including MTP modules
  std::set<int64_t> own_layers_;     // those that this rank runs
  std::map<int64_t, Layer> layers_;  // statistics of this step that the host has read
  // [layers, E + 3], statistics of this step that the host has not read yet; undefined: there never were any. Does not
  // move, since replayed passes add to it.
  at::Tensor on_device_;
  std::map<int64_t, at::Tensor> biases_;
};

}  // namespace ranklab
