#include "backends/cuda/nccl/recorded_call.h"

#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/cuda/CUDAGuard.h>

#include <utility>

#include "core/base/error.h"
#include "core/comm/call_check.h"

namespace ranklab {
namespace {

// The timing of a recorded call, which has no times of its own.
class NoTimes final : public CallTiming {
 public:
  explicit NoTimes(const CallTimes& posted) : times_(posted) {
    times_.matched_wall_ns = times_.done_wall_ns = times_.posted_wall_ns;
  }
  bool known() const override { return true; }
  CallTimes call_times() const override { return times_; }

 private:
  CallTimes times_;
};

class RecordedWork final : public Work, public OffersTiming {
 public:
  RecordedWork(Call call, const CallTimes& posted)
      : call_(std::move(call)), timing_(std::make_shared<const NoTimes>(posted)) {}
  at::Tensor wait() override {
    end.block(c10::cuda::getCurrentCUDAStream(call_.output.device().index()));
    return call_.output;
  }
  bool is_completed() const override { return true; }
  CallTimes times() const override { return timing_->call_times(); }
  std::shared_ptr<const CallTiming> timing() const override { return timing_; }

  at::cuda::CUDAEvent end;

 private:
  Call call_;
  std::shared_ptr<const NoTimes> timing_;
};

}  // namespace

bool captures_now() { return c10::cuda::currentStreamCaptureStatusMayInitCtx() != c10::cuda::CaptureStatus::None; }

WorkPtr record_call(NcclComm& comm, Call call, const CallTimes& times, const std::function<void()>& start) {
  RANKLAB_CHECK(call.verb != Verb::kSend && call.verb != Verb::kRecv && call.verb != Verb::kBarrier,
                ErrorKind::kEnvironment, .where = "--cuda-graph",
                .what = "a message or a barrier cannot be part of a graph: hosts take part in it",
                .got = describe(call), .want = "collectives alone", .fix = "leave --cuda-graph out");
  const NcclComm::Use use(comm, "recording " + comm.describe() + " " + describe(call));
  at::cuda::CUDAEvent ready;
  ready.record(c10::cuda::getCurrentCUDAStream(comm.context()->device.index()));
  const c10::cuda::CUDAStreamGuard on_comm_stream(comm.stream());
  ready.block(comm.stream());
  start();
  auto work = std::make_shared<RecordedWork>(std::move(call), times);
  work->end.record(comm.stream());
  return work;
}

}  // namespace ranklab
