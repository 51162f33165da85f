#include "backends/cuda/nccl/nccl_lanes.h"

#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include <chrono>
#include <cstdlib>
#include <thread>
#include <utility>

#include "backends/cuda/nccl/nccl_verbs.h"
#include "core/comm/call_check.h"

namespace ranklab {
namespace {

// Keeps the allocator from reusing this memory while the communication stream still uses it.
void keep_for_stream(const at::Tensor& tensor, const c10::cuda::CUDAStream& stream) {
  if (tensor.defined() && tensor.numel() > 0) {
    c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), stream);
  }
}

}  // namespace

std::shared_ptr<NcclSpan> launch(NcclComm& comm, const Call& call, const CallTimes& times, at::cuda::CUDAEvent& ready,
                                 const std::function<void()>& start) {
  const std::string what = "#" + std::to_string(times.sequence) + " " + describe(call);
  auto span = std::make_shared<NcclSpan>(comm.context(), what, times);
  const NcclComm::Use use(comm, "starting " + comm.describe() + " " + what);
  const c10::cuda::CUDAStreamGuard on_comm_stream(comm.stream());
  ready.block(comm.stream());
  span->begin.record(comm.stream());
  start();
  span->end.record(comm.stream());
  keep_for_stream(call.input, comm.stream());
  keep_for_stream(call.output, comm.stream());
  comm.add(span);
  return span;
}

void NcclLanes::open(const MessageLane& name, NcclMembers members) {
  if (contains(name)) return;
  Lane lane;
  const bool sends = members.rank == 0;
  lane.my_key = members.key + "/posted/" + std::to_string(members.rank);
  lane.their_key = members.key + "/posted/" + std::to_string(1 - members.rank);
  lane.comm = std::make_unique<NcclComm>(std::move(members), context_);
  // NCCL connects the two ranks at their first message, so one is exchanged here.
  const at::Tensor token = at::zeros({1}, at::dtype(at::kByte).device(context_->device));
  Call first{.verb = sends ? Verb::kSend : Verb::kRecv, .site = std::source_location::current()};
  (sends ? first.input : first.output) = token;
  first.peer = sends ? name.to : name.from;
  at::cuda::CUDAEvent ready;
  ready.record(c10::cuda::getCurrentCUDAStream(context_->device.index()));
  launch(*lane.comm, first, {}, ready, [&] { start_message(*lane.comm, first); });
  lanes_.emplace(name, std::move(lane));
}

void NcclLanes::post(const MessageLane& name, PostedMessagePtr message) {
  Lane& lane = lanes_.at(name);
  lane.waiting.push_back(std::move(message));
  context_->rendezvous.set(lane.my_key, std::to_string(++lane.posted));
  launch_matched();
}

bool NcclLanes::posted_there(Lane& lane) {
  if (lane.posted_there > lane.launched) return true;
  if (const auto count = context_->rendezvous.look(lane.their_key)) lane.posted_there = std::atoll(count->c_str());
  return lane.posted_there > lane.launched;
}

bool NcclLanes::launch_next(Lane& lane) {
  if (lane.waiting.empty() || !posted_there(lane)) return false;
  PostedMessage& message = *lane.waiting.front();
  message.span = launch(*lane.comm, message.call, message.times, message.ready,
                        [&, &comm = *lane.comm] { start_message(comm, message.call); });
  ++lane.launched;
  lane.waiting.pop_front();
  return true;
}

// Repeats until a round launches nothing: then every message that the peer posted before one that was launched here is
// launched too. Otherwise this rank could start to wait for others without having launched something that they still
// need.
void NcclLanes::launch_matched() {
  context_->failure.throw_if_set();
  for (bool launched = true; launched;) {
    launched = false;
    for (auto& [name, lane] : lanes_) {
      while (launch_next(lane)) launched = true;
    }
  }
}

void NcclLanes::wait_launched(const PostedMessage& message) {
  context_->failure.throw_if_set();
  if (message.span) return;
  const Watchdog::HostCall call(context_->watchdog, "waiting for the other side of " + describe(message.call));
  while (true) {
    launch_matched();
    if (message.span) return;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

at::Tensor NcclMessageWork::wait() {
  if (const auto once = std::exchange(before_wait_, nullptr)) once();
  lanes_->wait_launched(*message_);
  message_->span->end.block(c10::cuda::getCurrentCUDAStream());
  return message_->call.output;
}

bool NcclMessageWork::is_completed() const {
  lanes_->launch_matched();
  return message_->span && message_->span->end.query();
}

}  // namespace ranklab
