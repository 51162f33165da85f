#include "backends/cuda/nccl/nccl_communicator.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "backends/cuda/gpu_choice.h"
#include "backends/cuda/nccl/call_compare.h"
#include "backends/cuda/nccl/canonical_reduce.h"
#include "backends/cuda/nccl/nccl_verbs.h"
#include "backends/cuda/nccl/recorded_call.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/comm/call_check.h"
#include "core/trace/tracer.h"

namespace ranklab {
namespace {

// The limit for each kernel of a lane. A receive spins until its message arrives, and a rank may have eight lanes:
// together they must leave enough of the GPU to the computation that the messages wait for.
constexpr int kLaneCtas = 4;
// One for computation, and one for each axis that communicates concurrently.
constexpr int kOtherStreams = 4;

// Each communicator has, besides our stream, an internal stream of NCCL, which waits for the same kernels.
int streams_of(int64_t lanes) { return lanes == 0 ? 0 : 2 * (static_cast<int>(lanes) + kOtherStreams); }

MessageLane lane_of(const Call& call, int rank) {
  return call.verb == Verb::kSend ? MessageLane{rank, call.peer, call.lane} : MessageLane{call.peer, rank, call.lane};
}

std::string key_of(const Group& group, int serial) { return "nccl/" + group.label() + "/" + std::to_string(serial); }

}  // namespace

NcclCommunicator::NcclCommunicator(const Group& group, int serial, NcclContextPtr context)
    : Communicator(group), context_(std::move(context)), serial_(serial) {
  if (group.size() == 1) return;
  lanes_ = std::make_shared<NcclLanes>(context_);
  comm_ = std::make_unique<NcclComm>(NcclMembers{.key = key_of(group, serial),
                                                 .label = group.label(),
                                                 .global_ranks = group.global_ranks,
                                                 .rank = group.group_rank},
                                     context_);
}

NcclCommunicator::~NcclCommunicator() = default;

bool NcclCommunicator::open_lanes(const std::vector<MessageLane>& lanes) {
  const auto mine = std::count_if(lanes.begin(), lanes.end(),
                                  [this](const MessageLane& lane) { return lane.from == rank() || lane.to == rank(); });
  require_queues(streams_of(mine));
  for (const MessageLane& lane : lanes) {
    if (lane.from == rank() || lane.to == rank()) open(lane);
  }
  return true;
}

void NcclCommunicator::open(const MessageLane& lane) {
  const std::string name = std::to_string(lane.from) + ">" + std::to_string(lane.to) + "." + std::to_string(lane.lane);
  const auto global = [this](int member) { return group().global_ranks[static_cast<size_t>(member)]; };
  lanes_->open(lane, {.key = key_of(group(), serial_) + "/lane/" + name,
                      .label = group().label() + " lane " + name,
                      .global_ranks = {global(lane.from), global(lane.to)},
                      .rank = lane.from == rank() ? 0 : 1,
                      .max_ctas = kLaneCtas});
}

PostedMessagePtr NcclCommunicator::post_message(const Call& call, const CallTimes& times) {
  const MessageLane lane = lane_of(call, rank());
  if (!lanes_->contains(lane)) {
    // Two ranks that both send first must open the lanes in the same order.
    open({std::min(lane.from, lane.to), std::max(lane.from, lane.to), lane.lane});
    open({std::max(lane.from, lane.to), std::min(lane.from, lane.to), lane.lane});
  }
  auto message = std::make_shared<PostedMessage>(call, times);
  message->ready.record(c10::cuda::getCurrentCUDAStream(context_->device.index()));
  lanes_->post(lane, message);
  return message;
}

int64_t NcclCommunicator::next_sequence(const Call& call) {
  std::tuple<int, int, int> key = {-1, -1, 0};
  if (is_message(call)) {
    const MessageLane lane = lane_of(call, rank());
    key = {lane.from, lane.to, lane.lane};
  }
  return sequences_[key]++;
}

void NcclCommunicator::check_device(const Call& call) const {
  const at::Tensor& tensor = payload(call);
  RANKLAB_CHECK(!tensor.defined() || tensor.device() == context_->device, ErrorKind::kInvalidArgument,
                .where = "nccl " + group().label() + ", rank " + std::to_string(group().global_rank()) + ", " +
                         std::string(name(call.verb)) + " at " + describe(call.site),
                .what = "the tensor is on another device", .got = tensor.device().str(), .want = context_->device.str(),
                .fix = "move it to the rank's device first");
}

WorkPtr NcclCommunicator::start(Call call, const CallTimes& times) {
  const bool reduces = call.verb == Verb::kAllReduce || call.verb == Verb::kReduceScatter;
  const auto on_stream = [&] {
    if (reduces && context_->options.canonical_reductions) {
      start_canonical_reduction(*comm_, group(), call);
    } else {
      start_collective(*comm_, group(), call);
    }
  };
  if (captures_now()) return record_call(*comm_, call, times, on_stream);
  at::cuda::CUDAEvent ready;
  ready.record(c10::cuda::getCurrentCUDAStream(context_->device.index()));
  auto span = launch(*comm_, call, times, ready, on_stream);
  return std::make_shared<NcclWork>(context_, std::move(call), std::move(span));
}

WorkPtr NcclCommunicator::post(Call call) {
  RANKLAB_CHECK(comm_ != nullptr, ErrorKind::kInternal, .where = "nccl " + group().label(),
                .what = "a call in a group of one", .got = std::string(name(call.verb)));
  check_device(call);
  context_->failure.throw_if_set();
  CallTimes times;
  times.posted_wall_ns = wall_now_ns();
  times.sequence = next_sequence(call);
  times.wire_bytes = ring_bytes(group(), call);
  times.matched_virtual_ns = call.posted_virtual_ns;
  times.matched_bytes = call.posted_bytes;
  std::function<void()> compare;
  if (context_->options.check_calls) {
    compare = [context = context_, its_group = group(), serial = serial_, call, sequence = times.sequence] {
      compare_calls(context->rendezvous, its_group, serial, call, sequence);
    };
  }
  // A receive may be posted long before its message, so it is compared when it is waited for.
  if (compare && call.verb != Verb::kRecv) std::exchange(compare, nullptr)();
  if (is_message(call) && !captures_now())
    return std::make_shared<NcclMessageWork>(lanes_, post_message(call, times), std::move(compare));
  return start(std::move(call), times);
}

}  // namespace ranklab
