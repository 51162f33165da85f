// The verbs of one group over NCCL. Collectives start at once on the group's own high-priority stream, after what the
// caller's stream has done so far. Messages are noted and started together at the next wait(), is_completed() or
// collective of the group, so that two ranks that both post a send before a receive do not block each other; between
// two ranks they are matched in the order of posting, whatever their tag (NCCL has none). The order of a reduction is
// NCCL's own (not specified, may change with size and topology) unless canonical_reductions is set. Thread rule: its
// rank's thread only.
#pragma once
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/nccl_comm.h"
#include "backends/cuda/nccl_work.h"
#include "core/comm/communicator.h"

namespace ranklab {

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(const Group& group, int serial, c10::Device device, Rendezvous& rendezvous,
                   const CudaWorldOptions& options);
  ~NcclCommunicator() override;

  WorkPtr post(Call call) override;

 private:
  struct State;
  int64_t next_sequence(const Call& call);
  void check_device(const Call& call) const;

  c10::Device device_;
  Rendezvous& rendezvous_;
  CudaWorldOptions options_;
  std::shared_ptr<State> state_;
  std::map<std::tuple<int, int, int>, int64_t>
      sequences_;  // by sender, receiver and tag; collectives under (-1, -1, 0)
};

// Compares what a call is with the other members', through the store: the debug option check_calls. Throws
// kCommunication naming both calls.
void compare_calls(Rendezvous& rendezvous, const Group& group, int serial, const Call& call, int64_t sequence);
// What must be equal: verb, reduction, dtype, root, rows and the shape behind the rows.
std::string signature(const Call& call);

}  // namespace ranklab
