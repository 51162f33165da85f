#include "backends/cuda/nccl_work.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/trace/tracer.h"

namespace ranklab {

NcclSpan::NcclSpan(std::string what) : begin(cudaEventDefault), end(cudaEventDefault), what_(std::move(what)) {}

WatchedCall::State NcclSpan::state() const {
  if (end.query()) return State::kDone;
  return begin.query() ? State::kRunning : State::kWaiting;
}

NcclWork::NcclWork(NcclContextPtr context, Call call, CallTimes times, std::shared_ptr<NcclSpan> span)
    : context_(std::move(context)), call_(std::move(call)), times_(times), span_(std::move(span)) {}

bool NcclWork::is_completed() const {
  context_->failure.throw_if_set();
  return span_->end.query();
}

at::Tensor NcclWork::wait() {
  context_->failure.throw_if_set();
  span_->end.block(c10::cuda::getCurrentCUDAStream(context_->device.index()));
  if (call_.verb == Verb::kBarrier) wait_on_host();
  return call_.output;
}

// Spins while an answer is near, then sleeps, so that eight waiting processes do not burn eight cores.
void NcclWork::wait_on_host() const {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  while (!is_completed()) {
    if (Clock::now() - begin > std::chrono::microseconds(200))
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

CallTimes NcclWork::times() const {
  CallTimes times = times_;
  times.matched_wall_ns = times.done_wall_ns = std::max(times.posted_wall_ns, wall_now_ns());
  if (!span_->end.query()) return times;
  const auto length_ns = static_cast<int64_t>(static_cast<double>(span_->begin.elapsed_time(span_->end)) * 1e6);
  times.matched_wall_ns = std::max(times.posted_wall_ns, times.done_wall_ns - length_ns);
  return times;
}

}  // namespace ranklab
