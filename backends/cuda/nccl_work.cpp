#include "backends/cuda/nccl_work.h"

#include "core/comm/call_check.h"
#include "core/trace/tracer.h"

namespace ranklab {

NcclSpan::NcclSpan() : begin(cudaEventDefault), end(cudaEventDefault) {}

NcclWork::NcclWork(std::shared_ptr<NcclComm> comm, Call call, CallTimes times, std::function<void()> flush)
    : comm_(std::move(comm)), call_(std::move(call)), times_(times), flush_(std::move(flush)) {}

bool NcclWork::is_completed() const {
  if (!span_ && flush_) flush_();
  return done_ || (span_ && span_->end.query());
}

at::Tensor NcclWork::wait() {
  if (done_) return call_.output;
  if (!span_ && flush_) flush_();
  comm_->wait_until([&] { return span_->end.query(); }, describe(call_));
  span_->end.block(c10::cuda::getCurrentCUDAStream(comm_->stream().device_index()));
  times_.done_wall_ns = wall_now_ns();
  const auto length_ns = static_cast<int64_t>(static_cast<double>(span_->begin.elapsed_time(span_->end)) * 1e6);
  times_.matched_wall_ns = std::max(times_.posted_wall_ns, times_.done_wall_ns - length_ns);
  done_ = true;
  return call_.output;
}

}  // namespace ranklab
