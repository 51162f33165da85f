#include "backends/cuda/nccl_communicator.h"

#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include <algorithm>

#include "backends/cuda/call_compare.h"
#include "backends/cuda/canonical_reduce.h"
#include "backends/cuda/gpu_choice.h"
#include "backends/cuda/nccl_verbs.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/comm/call_check.h"
#include "core/trace/tracer.h"

namespace ranklab {
namespace {

// Of each kernel of a lane. A receive spins until its message comes, and a rank may have eight lanes: together they
// must leave the GPU to the compute that the messages wait for.
constexpr int kLaneCtas = 4;
// Streams besides the lanes: compute and one for each axis that communicates at once.
constexpr int kOtherStreams = 4;

bool is_message(const Call& call) { return call.verb == Verb::kSend || call.verb == Verb::kRecv; }

// The allocator must not hand this memory out while the communication stream still uses it.
void keep_for_stream(const at::Tensor& tensor, const c10::cuda::CUDAStream& stream) {
  if (tensor.defined() && tensor.numel() > 0) {
    c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), stream);
  }
}

MessageLane lane_of(const Call& call, int rank) {
  return call.verb == Verb::kSend ? MessageLane{rank, call.peer, call.lane} : MessageLane{call.peer, rank, call.lane};
}

std::string key_of(const Group& group, int serial) { return "nccl/" + group.label() + "/" + std::to_string(serial); }

}  // namespace

NcclCommunicator::NcclCommunicator(const Group& group, int serial, NcclContextPtr context)
    : Communicator(group), context_(std::move(context)), serial_(serial) {
  if (group.size() == 1) return;
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
  require_queues(static_cast<int>(mine) + (mine > 0 ? kOtherStreams : 0));
  for (const MessageLane& lane : lanes) {
    if (lane.from == rank() || lane.to == rank()) open(lane);
  }
  return true;
}

// Both ends of the lane do this. The first message connects them, which holds the host until the other side is there:
// that is done here, so that no later message does.
void NcclCommunicator::open(const MessageLane& lane) {
  if (lanes_.contains(lane)) return;
  const std::string name = std::to_string(lane.from) + ">" + std::to_string(lane.to) + "." + std::to_string(lane.lane);
  const auto global = [this](int member) { return group().global_ranks[static_cast<size_t>(member)]; };
  auto comm = std::make_unique<NcclComm>(NcclMembers{.key = key_of(group(), serial_) + "/lane/" + name,
                                                     .label = group().label() + " lane " + name,
                                                     .global_ranks = {global(lane.from), global(lane.to)},
                                                     .rank = lane.from == rank() ? 0 : 1,
                                                     .max_ctas = kLaneCtas},
                                         context_);
  const at::Tensor token = at::zeros({1}, at::dtype(at::kByte).device(context_->device));
  Call first{.verb = lane.from == rank() ? Verb::kSend : Verb::kRecv, .site = std::source_location::current()};
  (lane.from == rank() ? first.input : first.output) = token;
  first.peer = lane.from == rank() ? lane.to : lane.from;
  start(*comm, first, {});
  lanes_.emplace(lane, std::move(comm));
}

NcclComm& NcclCommunicator::comm_for(const Call& call) {
  if (!is_message(call)) return *comm_;
  const MessageLane lane = lane_of(call, rank());
  if (!lanes_.contains(lane)) {
    // Two ranks that each send to the other first must open the same lane first.
    open({std::min(lane.from, lane.to), std::max(lane.from, lane.to), lane.lane});
    open({std::max(lane.from, lane.to), std::min(lane.from, lane.to), lane.lane});
  }
  return *lanes_.at(lane);
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

// On the communicator's stream, after the current stream, between two events.
std::shared_ptr<NcclSpan> NcclCommunicator::start(NcclComm& comm, const Call& call, const CallTimes& times) {
  const std::string what = "#" + std::to_string(times.sequence) + " " + describe(call);
  auto span = std::make_shared<NcclSpan>(context_, what, times);
  const NcclComm::Use use(comm, "starting " + comm.describe() + " " + what);
  at::cuda::CUDAEvent ready;
  ready.record(c10::cuda::getCurrentCUDAStream(comm.stream().device_index()));
  const c10::cuda::CUDAStreamGuard on_comm_stream(comm.stream());
  ready.block(comm.stream());
  span->begin.record(comm.stream());
  const bool reduces = call.verb == Verb::kAllReduce || call.verb == Verb::kReduceScatter;
  if (is_message(call)) {
    start_message(comm, call);
  } else if (reduces && context_->options.canonical_reductions) {
    start_canonical_reduction(comm, group(), call);
  } else {
    start_collective(comm, group(), call);
  }
  span->end.record(comm.stream());
  keep_for_stream(call.input, comm.stream());
  keep_for_stream(call.output, comm.stream());
  comm.add(span);
  return span;
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
  if (context_->options.check_calls) compare_calls(context_->rendezvous, group(), serial_, call, times.sequence);
  std::shared_ptr<NcclSpan> span = start(comm_for(call), call, times);
  return std::make_shared<NcclWork>(context_, std::move(call), std::move(span));
}

}  // namespace ranklab
