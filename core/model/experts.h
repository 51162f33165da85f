// The routed experts of a layer that this rank owns: MLPs, expert e on ep rank e / (E / ep), each sharded over etp as a
// column-parallel and a row-parallel layer. Legend: N rows, sorted by local expert, H hidden, F width of an expert.
// Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/comm/communicator.h"
#include "core/nn/parameter.h"
#include "core/parallel/expert/expert_bias.h"
#include "core/parallel/token_context.h"
#include "core/spec/layer_specs.h"

namespace ranklab {

class LinearQuantizer;

class Experts {
 public:
  // `spec` describes every expert; an expert's index is part of its scope. `shares_weights`: with other uses in the
  // same forward.
  Experts(const ModuleScope& scope, const MlpSpec& spec, const ModelConfig& config, Communicator& ep, Communicator& etp,
          bool shares_weights = false);
  // rows [N, H], counts: rows per local expert -> [N, H]; with etp the result is a partial sum.
  at::Tensor operator()(const at::Tensor& rows_NH, const std::vector<int64_t>& counts,
                        const TokenContext& tokens) const;

 private:
  at::Tensor (*activation_)(const at::Tensor&);
  bool shares_weights_;
  std::vector<at::Tensor> up_, down_;
  std::vector<at::Tensor> up_biases_, down_biases_;  // empty: none
  BiasUse down_bias_use_;
  std::vector<LinearQuantizer*> up_quantizers_, down_quantizers_;  // empty: none
};

}  // namespace ranklab
