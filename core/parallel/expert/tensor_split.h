// Expert tensor parallelism: the ranks of an etp group each hold a slice of the same experts and bring different
// tokens. Before the experts every rank takes the tokens of all of them; afterwards the partial outputs are added and
// each gets its own back (Megatron-Core's expert tensor parallelism, arXiv 2504.14960). Cost: 2 collectives of the
// group's rows, and an all_gather of counts. A group of one does nothing. Thread rule: its rank's thread.
#pragma once
#include <ATen/core/Tensor.h>

#include <vector>

#include "core/comm/communicator.h"

namespace ranklab {

class EtpTokens {
 public:
  // rows [N, H] by local expert, counts of each.
  EtpTokens(Communicator& etp, const at::Tensor& rows_NH, const std::vector<int64_t>& counts);
  const at::Tensor& rows() const { return rows_; }                  // of the whole group, by local expert
  const std::vector<int64_t>& counts() const { return counts_; }    // of the whole group
  at::Tensor own_outputs(const at::Tensor& partial_outputs) const;  // [N, H] again

 private:
  Communicator& etp_;
  at::Tensor rows_;
  std::vector<int64_t> counts_;
  std::vector<int64_t> rank_rows_;
  at::Tensor by_expert_;
};

}  // namespace ranklab
