// A call in flight on a GPU. wait() makes the caller's stream wait for the call, but not the host, which runs ahead;
// only a barrier blocks the host, since it orders what processes do elsewhere (files). The watchdog finds calls that do
// not end, and the next wait() or call throws its error. Times come from two events around the call on its stream. The
// call counts as matched when the stream reaches it, so its duration includes waiting for peers (NCCL does not report
// when the last one arrived). The times are known once the GPU has passed the events; before that, times() gives the
// host's current time. Thread rule: its rank's thread; the watchdog reads the state.
#pragma once
#include <ATen/cuda/CUDAEvent.h>

#include <memory>
#include <string>

#include "backends/cuda/nccl/device_clock.h"
#include "backends/cuda/nccl/nccl_context.h"
#include "core/comm/call_timing.h"
#include "core/comm/communicator.h"

namespace ranklab {

// The two events around one launch.
class NcclSpan final : public WatchedCall, public CallTiming {
 public:
  NcclSpan(NcclContextPtr context, std::string what, const CallTimes& times);
  State state() const override;
  std::string describe() const override { return what_; }
  bool known() const override;
  CallTimes call_times() const override;

  at::cuda::CUDAEvent begin, end;

 private:
  NcclContextPtr context_;
  std::string what_;
  CallTimes times_;  // as posted
  DeviceClock::AnchorPtr anchor_;
};

class NcclWork final : public Work, public OffersTiming {
 public:
  NcclWork(NcclContextPtr context, Call call, std::shared_ptr<NcclSpan> span);

  at::Tensor wait() override;
  bool is_completed() const override;
  CallTimes times() const override { return span_->call_times(); }
  std::shared_ptr<const CallTiming> timing() const override { return span_; }

 private:
  void wait_on_host() const;

  NcclContextPtr context_;
  Call call_;  // keeps the tensors alive until the caller has waited
  std::shared_ptr<NcclSpan> span_;
};

}  // namespace ranklab
