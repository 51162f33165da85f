#include "backends/cuda/nccl_communicator.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>

#include "backends/cuda/canonical_reduce.h"
#include "backends/cuda/nccl_verbs.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/comm/call_check.h"
#include "core/trace/tracer.h"

namespace ranklab {
namespace {

bool is_message(const Call& call) { return call.verb == Verb::kSend || call.verb == Verb::kRecv; }

// The allocator must not hand this memory out while the communication stream still uses it.
void keep_for_stream(const at::Tensor& tensor, const c10::cuda::CUDAStream& stream) {
  if (tensor.defined() && tensor.numel() > 0) {
    c10::cuda::CUDACachingAllocator::recordStream(tensor.storage().data_ptr(), stream);
  }
}

}  // namespace

// Shared with the works, which may outlive the communicator's owner while an error unwinds.
struct NcclCommunicator::State {
  State(const Group& its_group, int serial_number, c10::Device device, Rendezvous& rendezvous)
      : group(its_group),
        serial(serial_number),
        comm(std::make_shared<NcclComm>(its_group, serial_number, device, rendezvous)) {}

  // Runs `start` on the communication stream, after the current stream, between two events.
  template <typename Start>
  std::shared_ptr<NcclSpan> run(const std::vector<Call>& calls, Start start) {
    auto span = std::make_shared<NcclSpan>();
    at::cuda::CUDAEvent ready;
    ready.record(c10::cuda::getCurrentCUDAStream(comm->stream().device_index()));
    const c10::cuda::CUDAStreamGuard on_comm_stream(comm->stream());
    ready.block(comm->stream());
    span->begin.record(comm->stream());
    start();
    span->end.record(comm->stream());
    for (const Call& call : calls) {
      keep_for_stream(call.input, comm->stream());
      keep_for_stream(call.output, comm->stream());
    }
    return span;
  }

  void flush() {
    std::vector<Call> calls;
    std::vector<std::shared_ptr<NcclWork>> works;
    for (const std::weak_ptr<NcclWork>& noted : messages) {
      if (auto work = noted.lock()) works.push_back(std::move(work));
    }
    messages.clear();
    if (works.empty()) return;
    for (const auto& work : works) calls.push_back(work->call());
    const std::shared_ptr<NcclSpan> span = run(calls, [&] { start_messages(*comm, calls); });
    for (const auto& work : works) work->started(span);
  }

  Group group;
  int serial;
  std::shared_ptr<NcclComm> comm;
  std::vector<std::weak_ptr<NcclWork>> messages;  // noted, not started
};

NcclCommunicator::NcclCommunicator(const Group& group, int serial, c10::Device device, Rendezvous& rendezvous,
                                   const CudaWorldOptions& options)
    : Communicator(group),
      device_(device),
      rendezvous_(rendezvous),
      options_(options),
      // A group of one never gets here with a call: it needs no NCCL.
      state_(group.size() > 1 ? std::make_shared<State>(group, serial, device, rendezvous) : nullptr) {}

NcclCommunicator::~NcclCommunicator() = default;

int64_t NcclCommunicator::next_sequence(const Call& call) {
  std::tuple<int, int, int> key = {-1, -1, 0};
  if (call.verb == Verb::kSend) key = {rank(), call.peer, call.tag};
  if (call.verb == Verb::kRecv) key = {call.peer, rank(), call.tag};
  return sequences_[key]++;
}

void NcclCommunicator::check_device(const Call& call) const {
  const at::Tensor& tensor = payload(call);
  RANKLAB_CHECK(!tensor.defined() || tensor.device() == device_, ErrorKind::kInvalidArgument,
                .where = "nccl " + group().label() + ", rank " + std::to_string(group().global_rank()) + ", " +
                         std::string(name(call.verb)) + " at " + describe(call.site),
                .what = "the tensor is on another device", .got = tensor.device().str(), .want = device_.str(),
                .fix = "move it to the rank's device first");
}

WorkPtr NcclCommunicator::post(Call call) {
  RANKLAB_CHECK(state_ != nullptr, ErrorKind::kInternal, .where = "nccl " + group().label(),
                .what = "a call in a group of one", .got = std::string(name(call.verb)));
  check_device(call);
  CallTimes times;
  times.posted_wall_ns = wall_now_ns();
  times.sequence = next_sequence(call);
  times.wire_bytes = ring_bytes(group(), call);
  times.matched_virtual_ns = call.posted_virtual_ns;
  times.matched_bytes = call.posted_bytes;
  if (options_.check_calls) compare_calls(rendezvous_, group(), state_->serial, call, times.sequence);
  auto work = std::make_shared<NcclWork>(state_->comm, call, times, [state = state_] { state->flush(); });
  if (is_message(call)) {
    state_->messages.push_back(work);
    return work;
  }
  state_->flush();
  const bool canonical =
      options_.canonical_reductions && (call.verb == Verb::kAllReduce || call.verb == Verb::kReduceScatter);
  work->started(state_->run({call}, [&] {
    if (canonical) {
      start_canonical_reduction(*state_->comm, group(), call);
    } else {
      start_collective(*state_->comm, group(), call);
    }
  }));
  return work;
}

std::string signature(const Call& call) {
  const at::Tensor& tensor = payload(call);
  std::string text = is_message(call) ? "message" : std::string(name(call.verb));
  if (call.verb == Verb::kAllReduce || call.verb == Verb::kReduceScatter)
    text += "(" + std::string(name(call.op)) + ")";
  if (call.verb == Verb::kBroadcast) text += " root " + std::to_string(call.peer);
  if (!tensor.defined()) return text;
  text += " " + std::string(c10::toString(tensor.scalar_type())) + " [";
  const bool rows_differ = call.verb == Verb::kAllGather || call.verb == Verb::kAllToAll;
  for (int64_t dim = 0; dim < tensor.dim(); ++dim) {
    text += (dim > 0 ? ", " : "") + (dim == 0 && rows_differ ? "rows" : std::to_string(tensor.size(dim)));
  }
  text += "]";
  if (call.verb == Verb::kReduceScatter) text += " rows " + join(std::span<const int64_t>(call.input_splits), " ");
  if (call.verb == Verb::kAllGather) text += " rows " + join(std::span<const int64_t>(call.output_splits), " ");
  return text;
}

void compare_calls(Rendezvous& rendezvous, const Group& group, int serial, const Call& call, int64_t sequence) {
  const bool message = is_message(call);
  std::string key = "calls/" + group.label() + "/" + std::to_string(serial) + "/";
  if (message) {
    const bool send = call.verb == Verb::kSend;
    const int from = send ? group.group_rank : call.peer, to = send ? call.peer : group.group_rank;
    key += std::to_string(from) + ">" + std::to_string(to) + "/" + std::to_string(call.tag) + "/";
  }
  key += std::to_string(sequence) + "/";
  const std::string mine = signature(call);
  rendezvous.set(key + std::to_string(group.group_rank), mine + " at " + describe(call.site));
  // A message is compared by its receiver alone: a sender goes on without waiting.
  if (call.verb == Verb::kSend) return;
  for (int member = 0; member < group.size(); ++member) {
    if (member == group.group_rank || (message && member != call.peer)) continue;
    const int global_rank = group.global_ranks[static_cast<size_t>(member)];
    const std::string theirs = rendezvous.get(key + std::to_string(member), global_rank);
    RANKLAB_CHECK(theirs.starts_with(mine + " at "), ErrorKind::kCommunication,
                  .where = "nccl " + group.label() + " #" + std::to_string(sequence),
                  .what = "members call different things",
                  .got = "rank " + std::to_string(group.global_rank()) + ": " + mine + " at " + describe(call.site) +
                         "; rank " + std::to_string(global_rank) + ": " + theirs,
                  .want = "the same call on every member", .fix = "look at both places");
  }
}

}  // namespace ranklab
