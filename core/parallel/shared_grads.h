// Parameters that several ranks of a pipeline hold (a tied embedding on the first and the last stage, both copies of
// DualPipe's model) get the sum of their gradients, added in the order of pipeline ranks, so that the copies stay equal
// bit for bit (Megatron-LM's embedding group). Cost: one message each way per pair of holders. Thread rule: its rank's
// thread; every holder calls sum().
#pragma once
#include <map>
#include <vector>

#include "core/comm/communicator.h"
#include "core/nn/parameter.h"

namespace ranklab {

class SharedGrads {
 public:
  // `pipeline` outlives this, the parameters too.
  SharedGrads(const std::vector<Parameter*>& parameters, Communicator& pipeline);
  // REQUIRES: every data.grad() is defined and summed over dp.
  void sum();

 private:
  using Holders = std::vector<int>;
  void sum(const Holders& holders, const std::vector<Parameter*>& parameters);

  Communicator& pipeline_;
  std::map<Holders, std::vector<Parameter*>> shared_;  // in one order on all ranks; parameters by name
};

}  // namespace ranklab
