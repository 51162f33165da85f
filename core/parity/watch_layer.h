// The layer of a watched step: its input, the gradient of its output and its weights are brought to one rank, which
// computes it alone and holds what the ranks have computed together to that, within tolerances from one more run that
// is moved by one unit in the last place and adds in another order. Cost: the layer's weights and activations of one
// microbatch as messages, two forwards and backwards of it on one rank. Thread rule: its rank's thread.
#pragma once
#include <limits>
#include <memory>
#include <string>

#include "core/nn/module_hooks.h"
#include "core/parity/one_rank_layer.h"
#include "core/runtime/sentinels/family.h"

namespace ranklab {

// Why no layer of this run can be computed by one rank alone; "": each can.
std::string why_not_alone(const RunPlan& plan);

// The same on all ranks.
struct LayerVerdict {
  double over = std::numeric_limits<double>::quiet_NaN();  // distance / allowed, of the first wrong tensor or else the
                                                           // farthest; NaN: the layer could not be computed alone
  std::string text = {};                                   // where it is wrong, else empty
};

class WatchedLayer final : public BatchWatch {
 public:
  WatchedLayer(SentinelContext& context, std::shared_ptr<ModelProvider> provider);

  // For the `count`th watched step.
  void choose(int64_t step, int64_t count);
  int64_t microbatch() const { return microbatch_; }
  // Whether this rank's part of it is wanted now.
  bool takes(const TensorKey& key) const;
  // Which documents are in the microbatch, if its data say so.
  void loaded(const Batch& batch, int64_t wait_ns) override;
  // The layer begins, with its weights in memory.
  void keep_weights(const std::string& path, ModulePass pass);
  // Collective, after the step.
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
  std::unique_ptr<OneRankLayer> alone_;  // made by the rank that needs it
  int64_t step_ = 0, layer_ = 0, microbatch_ = 0, dp_rank_ = 0, first_sample_ = 0;
  bool possible_ = true;  // in this run
  TensorPieces weights_;
  int64_t loads_ = 0;  // microbatches of this step
  std::shared_ptr<const Documents> documents_;
};

}  // namespace ranklab
