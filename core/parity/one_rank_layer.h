// Computes one layer of a model on one rank, from its input, the gradient of its output and its weights, of which
// several ranks have parts. The layer is built by the run's own model provider as a pipeline stage that has only this
// layer. Cost: a forward and a backward of one microbatch. Thread rule: its rank's thread, which makes no call to other
// ranks.
#pragma once
#include <memory>
#include <optional>

#include "core/model/batch.h"
#include "core/parity/parity_record.h"
#include "core/runtime/components.h"

namespace ranklab {

struct LayerCase {
  int64_t layer = 0, step = 0;
  int64_t first_sample = 0;                              // index of the microbatch's first sample in the global batch
  double balance_scale = 1;                              // Batch::balance_scale
  std::shared_ptr<const Documents> documents = nullptr;  // Batch::documents
  // The layer's weights and buffers (phase kWeights), `input` and `grad`; positions are those within the microbatch.
  const TensorPieces& pieces;
  TensorKey input, grad;
};

class OneRankLayer {
 public:
  OneRankLayer(const RunPlan& plan, std::shared_ptr<ModelProvider> provider, c10::Device device);
  ~OneRankLayer();
  // Records inputs and outputs of the layer's modules and their gradients. `perturb` above 0: weights and input are
  // changed by one unit in the last place. RETURNS: nothing if a part of the required tensors is missing.
  std::optional<ParityRecord> run(const LayerCase& layer, uint64_t perturb) const;

 private:
  struct Place;
  std::unique_ptr<Place> place_;
  std::shared_ptr<ModelProvider> provider_;
};

}  // namespace ranklab
