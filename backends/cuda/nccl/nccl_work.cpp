#include "backends/cuda/nccl/nccl_work.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/trace/tracer.h"

namespace ranklab {

NcclSpan::NcclSpan(NcclContextPtr context, std::string what, const CallTimes& times)
    : begin(cudaEventDefault),
      end(cudaEventDefault),
      context_(std::move(context)),
      what_(std::move(what)),
      times_(times),
      anchor_(context_->clock.anchor()) {}

WatchedCall::State NcclSpan::state() const {
  if (end.query()) return State::kDone;
  return begin.query() ? State::kRunning : State::kWaiting;
}

bool NcclSpan::known() const {
  context_->failure.throw_if_set();
  return end.query();
}

CallTimes NcclSpan::call_times() const {
  CallTimes times = times_;
  const bool ended = end.query();
  times.matched_wall_ns = std::max(times.posted_wall_ns, ended ? anchor_->wall_ns_of(begin) : wall_now_ns());
  times.done_wall_ns = std::max(times.matched_wall_ns, ended ? anchor_->wall_ns_of(end) : wall_now_ns());
  return times;
}

NcclWork::NcclWork(NcclContextPtr context, Call call, std::shared_ptr<NcclSpan> span)
    : context_(std::move(context)), call_(std::move(call)), span_(std::move(span)) {}

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

// Spins at first, then sleeps, so that eight waiting processes do not occupy eight cores.
void NcclWork::wait_on_host() const {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  while (!is_completed()) {
    if (Clock::now() - begin > std::chrono::microseconds(200))
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

}  // namespace ranklab
