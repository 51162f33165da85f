// Checks one layer of a watched step: its input, the gradient of its output and its weights are sent to one rank, which
// computes the layer alone and compares what the ranks computed together with its result. Tolerances come from one more
// run of the layer that is perturbed by one unit in the last place and adds in another order. Cost: the layer's weights
// and its activations of one microbatch as messages, and two forwards and backwards of the layer on one rank. Thread
// rule: its rank's thread.
#pragma once
#include <limits>
#include <memory>
#include <string>

#include "core/nn/module_hooks.h"
#include "core/parity/one_rank_layer.h"
#include "core/runtime/sentinels/family.h"

namespace ranklab {

// The reason why no layer of this run can be computed by one rank alone; "" if every layer can.
std::string why_not_alone(const RunPlan& plan);

// The result of a check; the same on all ranks.
struct LayerVerdict {
  // distance / tolerance of the first wrong tensor, or if none is wrong of the one closest to its tolerance; NaN: the
  // layer could not be computed alone
  double over = std::numeric_limits<double>::quiet_NaN();
  std::string text = {};  // where the layer is wrong; empty if it is right
};

class WatchedLayer final : public BatchWatch {
 public:
  WatchedLayer(SentinelContext& context, std::shared_ptr<ModelProvider> provider);

  // Chooses the layer and microbatch for the `count`th watched step.
  void choose(int64_t step, int64_t count);
  int64_t microbatch() const { return microbatch_; }
  // Whether this rank has to record this tensor now.
  bool takes(const TensorKey& key) const;
  // Remembers which documents are in the microbatch, if the data define documents.
  void loaded(const Batch& batch, int64_t wait_ns) override;
  // Call when the layer begins, while its weights are in memory.
  void keep_weights(const std::string& path, ModulePass pass);
  // Collective; call after the step.
  LayerVerdict judge(const TensorPieces& mine, double balance_scale);

 private:
  std::string path() const { return "layers." + std::to_string(layer_); }
  bool belongs(const std::string& name) const { return name == path() || name.starts_with(path() + "."); }
  TensorPieces in_microbatch(const TensorPieces& mine) const;
  TensorKey input_of(const TensorPieces& pieces) const;
  std::string axes_of_layer() const;
  LayerVerdict compared(TensorPieces pieces, double balance_scale);

  SentinelContext& context_;
  std::shared_ptr<ModelProvider> provider_;
  std::unique_ptr<OneRankLayer> alone_;  // created only by the rank that needs it
  int64_t step_ = 0, layer_ = 0, microbatch_ = 0, dp_rank_ = 0, first_sample_ = 0;
  bool possible_ = true;  // whether layers of this run can be computed alone
  TensorPieces weights_;
  int64_t loads_ = 0;  // microbatches of this step loaded so far
  std::shared_ptr<const Documents> documents_;
};

}  // namespace ranklab
