// A call in flight on a GPU: done when its end event has passed. wait() holds the host until then, with the world's
// timeout, so that an error or a missing peer is an Error here and not a hang at the next synchronization; and it makes
// the compute stream of the caller see the result. Times: the length is the time between two events on the stream (NCCL
// does not tell when the last member came, so it includes waiting for peers); the end is when the host saw it.
// Thread rule: its rank's thread only.
#pragma once
#include <ATen/cuda/CUDAEvent.h>

#include <functional>
#include <memory>
#include <string>

#include "backends/cuda/nccl_comm.h"
#include "core/comm/communicator.h"

namespace ranklab {

// The events of one start, shared by the messages that started together.
struct NcclSpan {
  NcclSpan();
  at::cuda::CUDAEvent begin, end;
};

class NcclWork final : public Work {
 public:
  // `flush` starts this call when it was only noted so far (messages).
  NcclWork(std::shared_ptr<NcclComm> comm, Call call, CallTimes times, std::function<void()> flush);

  at::Tensor wait() override;
  bool is_completed() const override;
  CallTimes times() const override { return times_; }

  void started(std::shared_ptr<NcclSpan> span) { span_ = std::move(span); }
  const Call& call() const { return call_; }

 private:
  std::shared_ptr<NcclComm> comm_;
  Call call_;  // keeps the tensors alive until the call is done
  CallTimes times_;
  std::function<void()> flush_;
  std::shared_ptr<NcclSpan> span_;
  bool done_ = false;
};

}  // namespace ranklab
