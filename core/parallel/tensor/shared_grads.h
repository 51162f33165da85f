// Sums the gradients of parameters that several pipeline ranks hold (a tied embedding on the first and the last stage,
// both copies of DualPipe's model), in the order of pipeline ranks, so that the copies stay bitwise equal
// (Megatron-LM's embedding group). Cost: one message each way per pair of holders. Thread rule: its rank's thread;
// every holder calls sum().
#pragma once
#include <map>
#include <vector>

#include "core/comm/communicator.h"
#include "core/nn/parameter.h"

namespace ranklab {

class SharedGrads {
 public:
  // `pipeline` and the parameters must outlive this.
  SharedGrads(const std::vector<Parameter*>& parameters, Communicator& pipeline);
  // REQUIRES: every data.grad() is defined and summed over dp.
  void sum();

 private:
  using Holders = std::vector<int>;
  void sum(const Holders& holders, const std::vector<Parameter*>& parameters);

  Communicator& pipeline_;
  std::map<Holders, std::vector<Parameter*>> shared_;  // the same order on all ranks; parameters sorted by name
};

}  // namespace ranklab
