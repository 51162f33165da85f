// One NCCL communicator of some ranks, with its high-priority stream. Its calls block the host only until they are
// launched. The watchdog handles calls that never end, and after it has aborted the communicator, the next use throws
// the rank's first error. Thread rule: its rank's thread; the overrides of WatchedComm are called by the watchdog.
#pragma once
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <mutex>
#include <string>
#include <vector>

#include "backends/cuda/nccl/nccl_context.h"

namespace ranklab {

struct NcclMembers {
  std::string key;                // identifies the communicator in the store, the same on every member
  std::string label;              // "dp[0 1]" for messages
  std::vector<int> global_ranks;  // in the communicator's order
  int rank = 0;                   // this process's index in global_ranks
  int max_ctas = 0;               // limit for NCCL's kernels; 0: NCCL decides
};

class NcclComm final : public WatchedComm {
 public:
  // Collective over the members. Throws naming a member that does not arrive, or that uses the same GPU.
  NcclComm(NcclMembers members, NcclContextPtr context);
  ~NcclComm() override;
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  // While a Use exists, the communicator is not aborted under the caller, and the watchdog knows what the host may wait
  // for. Throws the rank's first error if there is one.
  class Use {
   public:
    Use(NcclComm& comm, std::string doing);

   private:
    std::lock_guard<std::timed_mutex> lock_;
    Watchdog::HostCall call_;
  };

  // REQUIRES: a Use exists.
  ncclComm_t handle() const { return comm_; }
  c10::cuda::CUDAStream stream() const { return stream_; }
  const NcclContextPtr& context() const { return context_; }
  // Checks the result of one NCCL call. An error caused by a peer's death is reported as the error that the heartbeat
  // finds.
  void accept(ncclResult_t code, const char* doing);

  std::string describe() const override { return members_.label; }
  std::optional<Error> reported_error(bool& remote) override;
  // Aborts all communicators together, because aborting one may wait for the kernels of the others.
  static void abort_together(const std::vector<WatchedComm*>& comms);

 private:
  std::string exchange_id();
  void check_in();

  NcclMembers members_;
  NcclContextPtr context_;
  c10::cuda::CUDAStream stream_;
  std::timed_mutex in_use_;
  ncclComm_t comm_ = nullptr;
};

// Between construction and end() NCCL collects calls and then starts them together. Destruction without end() closes
// the group too.
class NcclGroup {
 public:
  explicit NcclGroup(NcclComm& comm);
  ~NcclGroup();
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  void end();

 private:
  NcclComm& comm_;
  bool open_ = true;
};

}  // namespace ranklab
