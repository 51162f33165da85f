// Token dispatch to the ranks that own the experts, and combine of the outputs. Names are those of
// --moe-token-dispatcher-type. A new dispatcher needs one file and one row in dispatcher.cpp (and its name in
// core/spec/moe_dispatcher_names.h). All dispatchers give the same outputs and gradients. Expert e belongs to ep rank e
// / (E / ep). Legend: T tokens of this rank, K experts per token, E experts, M assignments, N rows that arrive, H
// hidden. Thread rule: its rank's thread; every member of the ep group makes the same calls, forward and backward, even
// if it has no tokens or none go to its experts.
#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "core/comm/communicator.h"
#include "core/comm/peer_memory.h"
#include "core/parallel/expert/routing.h"
#include "core/parallel/expert/token_spread.h"
#include "core/parallel/expert/work_beside.h"
#include "core/precision/tensor_precision.h"

namespace ranklab {

// One forward through one layer: the dispatched tokens, and their combine.
class ExpertTrip {
 public:
  virtual ~ExpertTrip() = default;
  // The rows that arrived [N, H], sorted by local expert.
  const at::Tensor& rows() const { return rows_NH_; }
  // Number of rows per local expert.
  const std::vector<int64_t>& counts() const { return counts_; }
  // Whether they are the same for every expert on every rank, whatever the routing (Routing::slots).
  bool is_padded() const { return padded_; }
  // The experts' outputs [N, H] -> [T, H]: each of this rank's tokens as the weighted sum of its experts' outputs.
  virtual at::Tensor combine(const at::Tensor& outputs_NH) = 0;

 protected:
  at::Tensor rows_NH_;
  std::vector<int64_t> counts_;
  bool padded_ = false;
};

class TokenDispatcher {
 public:
  virtual ~TokenDispatcher() = default;
  // `beside` (null: none): its forward work may be done while the first tokens are on their way, and the transfer of
  // their gradients may take its backward work; the caller does what is left, where no transfer left time for it.
  virtual std::unique_ptr<ExpertTrip> dispatch(const at::Tensor& tokens_TH, const Routing& routing,
                                               WorkBeside* beside = nullptr) = 0;
};

struct DispatcherContext {
  Communicator* ep = nullptr;  // must outlive the dispatcher
  int64_t num_experts = 0;
  MoeConfig moe = {};  // for meta tensors, whose routing is unknown: determines how many rows go to each rank
  int gpus_per_node = 8;
  // wire format. REQUIRES: tokens were rounded by round_rows(). Not quantized: tokens are sent in their own type
  TensorPrecision wire = {};
  PeerMemoryPtr memory = nullptr;  // memory of the ep group, for rdep; null: peer_memory_of() the group
};
// Throws kInvalidArgument, with the nearest name, if there is no such dispatcher.
std::unique_ptr<TokenDispatcher> make_dispatcher(const std::string& name, const DispatcherContext& context);
std::vector<std::string> dispatcher_names();

}  // namespace ranklab
