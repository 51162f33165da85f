#include "core/comm/unsettled_calls.h"

#include <thread>
#include <utility>

#include "core/comm/traced_communicator.h"

namespace ranklab {
namespace {

// This rank's communicators with calls whose times are not known yet.
std::vector<UnsettledCalls*>& unsettled_here() {
  thread_local std::vector<UnsettledCalls*> calls;
  return calls;
}

}  // namespace

void set_wall_times(Event& event, const CallTimes& times) {
  event.wall_begin_ns = times.posted_wall_ns;
  event.wall_matched_ns = times.matched_wall_ns;
  event.wall_end_ns = times.done_wall_ns;
}

void record_call(Tracer& tracer, const Event& event, std::vector<double> sent_bytes) {
  if (sent_bytes.empty()) return tracer.record(event);
  tracer.record(event, std::move(sent_bytes));
}

UnsettledCalls::~UnsettledCalls() { std::erase(unsettled_here(), this); }

void UnsettledCalls::add(const Event& event, std::vector<double> sent_bytes, std::shared_ptr<const CallTiming> timing) {
  if (calls_.empty()) unsettled_here().push_back(this);
  calls_.push_back({event, std::move(sent_bytes), std::move(timing)});
  settle(/*wait=*/false);
}

void UnsettledCalls::settle(bool wait) {
  if (calls_.empty()) return;
  // Events are recorded with the tracer's state at the time of the wait().
  const int microbatch = tracer_->microbatch();
  const bool enabled = tracer_->enabled();
  tracer_->set_enabled(true);
  for (; !calls_.empty(); calls_.pop_front()) {
    Call& call = calls_.front();
    while (wait && !call.timing->known()) std::this_thread::yield();
    if (!call.timing->known()) break;
    set_wall_times(call.event, call.timing->call_times());
    tracer_->set_microbatch(call.event.microbatch);
    record_call(*tracer_, call.event, std::move(call.sent_bytes));
  }
  tracer_->set_microbatch(microbatch);
  tracer_->set_enabled(enabled);
  if (calls_.empty()) std::erase(unsettled_here(), this);
}

void settle_traced_calls() {
  for (UnsettledCalls* calls : std::vector(unsettled_here())) calls->settle(/*wait=*/true);
}

}  // namespace ranklab
