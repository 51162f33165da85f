// A call in flight on a GPU. wait() makes the caller's stream wait for it, not the host, which runs ahead; only a
// barrier holds the host, since it orders what processes do elsewhere (files). The watchdog finds calls that do not
// end, and the next wait() or call throws what it found. Times: those of two events around the call on its stream, so
// the length includes waiting for peers (NCCL does not tell when the last one came). They are known when the GPU has
// got there: times() asked earlier tells posted times alone. Thread rule: its rank's thread; the watchdog asks for the
// state.
#pragma once
#include <ATen/cuda/CUDAEvent.h>

#include <memory>
#include <string>

#include "backends/cuda/nccl_context.h"
#include "core/comm/communicator.h"

namespace ranklab {

// The events around one start.
class NcclSpan final : public WatchedCall {
 public:
  explicit NcclSpan(std::string what);
  State state() const override;
  std::string describe() const override { return what_; }

  at::cuda::CUDAEvent begin, end;

 private:
  std::string what_;
};

class NcclWork final : public Work {
 public:
  NcclWork(NcclContextPtr context, Call call, CallTimes times, std::shared_ptr<NcclSpan> span);

  at::Tensor wait() override;
  bool is_completed() const override;
  CallTimes times() const override;

 private:
  void wait_on_host() const;

  NcclContextPtr context_;
  Call call_;  // keeps the tensors alive until the caller has waited
  CallTimes times_;
  std::shared_ptr<NcclSpan> span_;
};

}  // namespace ranklab
