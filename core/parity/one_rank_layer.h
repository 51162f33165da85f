// One layer of a model as one rank computes it, from an input, the gradient of its output and weights that other ranks
// have in parts. Made by the run's own model provider as a pipeline stage of that layer alone. Cost: a forward and a
// backward of one microbatch. Thread rule: its rank's thread, which makes no call to other ranks.
#pragma once
#include <memory>
#include <optional>

#include "core/model/batch.h"
#include "core/parity/parity_record.h"
#include "core/runtime/components.h"

namespace ranklab {

struct LayerCase {
  int64_t layer = 0, step = 0;
  int64_t first_sample = 0;                              // of the microbatch, in the global batch
  double balance_scale = 1;                              // Batch::balance_scale
  std::shared_ptr<const Documents> documents = nullptr;  // Batch::documents
  // The layer's weights and buffers (phase kWeights), `input` and `grad`; places are those in the microbatch.
  const TensorPieces& pieces;
  TensorKey input, grad;
};

class OneRankLayer {
 public:
  OneRankLayer(const RunPlan& plan, std::shared_ptr<ModelProvider> provider, c10::Device device);
  ~OneRankLayer();
  // Inputs and outputs of the layer's modules and their gradients. `perturb` above 0: weights and input are moved by
  // one unit in the last place. RETURNS: nothing where a part of what it needs is missing.
  std::optional<ParityRecord> run(const LayerCase& layer, uint64_t perturb) const;

 private:
  struct Place;
  std::unique_ptr<Place> place_;
  std::shared_ptr<ModelProvider> provider_;
};

}  // namespace ranklab
