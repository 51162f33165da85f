// The routed experts of a layer that this rank owns: SwiGLU MLPs, expert e on ep rank e / (E / ep), each cut over etp
// as a column-parallel and a row-parallel layer. Legend: N rows by local expert, H hidden, F width of an expert. Thread
// rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "core/comm/communicator.h"
#include "core/nn/parameter.h"
#include "core/parallel/token_place.h"
#include "core/spec/model_config.h"

namespace ranklab {

class LinearQuantizer;

class Experts {
 public:
  // Parameters name.E.gate_up.weight [2F, H] (gate rows first) and name.E.down.weight [H, F].
  Experts(ParameterRegistry& registry, const std::string& name, const ModelConfig& config, Communicator& ep,
          Communicator& etp);
  // rows [N, H], counts of each own expert -> [N, H]; with etp a partial sum.
  at::Tensor operator()(const at::Tensor& rows_NH, const std::vector<int64_t>& counts, const TokenPlace& tokens) const;

 private:
  std::vector<at::Tensor> gate_up_, down_;
  std::vector<LinearQuantizer*> gate_up_quantizers_, down_quantizers_;  // empty: none
};

}  // namespace ranklab
