// One NCCL communicator of a group, with its high-priority stream. Non-blocking (ncclConfig_t::blocking = 0): no NCCL
// call holds the host, every wait polls with a limit, and looks whether another rank has failed. On a failure the
// communicator is aborted, which also frees the kernels that wait on the GPU. Thread rule: its rank's thread only.
#pragma once
#include <c10/cuda/CUDAStream.h>
#include <nccl.h>

#include <functional>
#include <string>

#include "backends/cuda/rendezvous.h"
#include "core/comm/group.h"

namespace ranklab {

class NcclComm {
 public:
  // Every member calls this; `serial` numbers the communicators of this group.
  NcclComm(const Group& group, int serial, c10::Device device, Rendezvous& rendezvous);
  ~NcclComm();
  NcclComm(const NcclComm&) = delete;
  NcclComm& operator=(const NcclComm&) = delete;

  ncclComm_t handle() const { return comm_; }
  c10::cuda::CUDAStream stream() const { return stream_; }

  // Between group_begin and group_end NCCL gathers calls and starts them together.
  void group_begin();
  void group_end();
  // Checks the code of one NCCL call and waits until the communicator has taken it.
  void accept(ncclResult_t code, const char* doing);
  // Polls `done` until it is true. Throws kTimeout after the world's timeout, or the error of NCCL or of another rank;
  // then the communicator is aborted. `waiting_for` names the call.
  void wait_until(const std::function<bool()>& done, const std::string& waiting_for);

 private:
  void settle(const char* doing);
  void abort() noexcept;

  Group group_;
  Rendezvous& rendezvous_;
  c10::cuda::CUDAStream stream_;
  ncclComm_t comm_ = nullptr;
  bool grouping_ = false;
};

}  // namespace ranklab
