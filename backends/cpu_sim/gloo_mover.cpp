#include "backends/cpu_sim/gloo_mover.h"

#include <gloo/allgatherv.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <array>
#include <vector>

#include "backends/cpu_sim/layout.h"
#include "core/base/error.h"
#include "core/base/exhausted.h"
#include "core/comm/call_check.h"
#include "core/sim/op_cost.h"

namespace ranklab::cpu_sim {
namespace {

using Rows = std::vector<int64_t>;

// Gloo requires a non-null pointer even for empty tensors.
uint8_t* pointer(void* data) {
  static uint8_t nothing = 0;
  return data == nullptr ? &nothing : static_cast<uint8_t*>(data);
}

int64_t sum(const Rows& rows) { return std::accumulate(rows.begin(), rows.end(), int64_t{0}); }

Rows scaled(const Rows& rows, int64_t factor) {
  Rows out = rows;
  for (int64_t& value : out) value *= factor;
  return out;
}

// Splits `total` into near-equal parts, the longer ones first.
Rows chunks(int64_t total, int64_t parts) {
  Rows out(static_cast<size_t>(parts), total / parts);
  for (int64_t i = 0; i < total % parts; ++i) ++out[static_cast<size_t>(i)];
  return out;
}

// One member's part of one collective.
class Part {
 public:
  Part(const Exchange& exchange, int seat, std::shared_ptr<gloo::Context> context)
      : call_(exchange.seats[static_cast<size_t>(seat)].call),
        n_(static_cast<int64_t>(exchange.seats.size())),
        me_(static_cast<size_t>(seat)),
        tag_(static_cast<uint32_t>(exchange.sequence)),
        context_(std::move(context)) {}

  void run() {
    switch (call_.verb) {
      case Verb::kAllReduce:
        return all_reduce();
      case Verb::kReduceScatter:
        return reduce(scaled(call_.input_splits, row_bytes(call_.input)), bytes_of(call_.output));
      case Verb::kAllGather:
        return all_gather();
      case Verb::kAllToAll:
        return all_to_all(call_.input.data_ptr(), scaled(call_.input_splits, row_bytes(call_.input)),
                          call_.output.data_ptr(), scaled(call_.output_splits, row_bytes(call_.input)));
      case Verb::kBroadcast:
        return broadcast();
      case Verb::kBarrier:
        return barrier();
      case Verb::kSend:
      case Verb::kRecv:
      case Verb::kCount:
        return;
    }
  }

 private:
  void all_to_all(void* from, Rows send_bytes, void* to, Rows recv_bytes) {
    gloo::AlltoallvOptions options(context_);
    options.setInput<uint8_t>(pointer(from), std::move(send_bytes));
    options.setOutput<uint8_t>(pointer(to), std::move(recv_bytes));
    options.setTag(tag_);
    gloo::alltoallv(options);
  }

  // Sends part j to member j, and sums into `out` what all members sent for this member's part.
  void reduce(const Rows& part_bytes, std::byte* out) {
    const int64_t mine = part_bytes[me_];
    const auto received = std::make_unique_for_overwrite<std::byte[]>(static_cast<size_t>(mine * n_));
    all_to_all(call_.input.data_ptr(), part_bytes, received.get(), Rows(static_cast<size_t>(n_), mine));
    std::vector<const void*> inputs;
    for (int64_t i = 0; i < n_; ++i) inputs.push_back(received.get() + i * mine);
    void* output = out;
    const Reduction reduction{dtype_of(call_.input.scalar_type()), call_.op, call_.reduce_in_fp32};
    tree_reduce(reduction, inputs, {&output, 1}, mine / size_bytes(reduction.dtype));
  }

  void gather(const at::Tensor* input, const Rows& part_bytes) {
    gloo::AllgathervOptions options(context_);
    if (input != nullptr) options.setInput<uint8_t>(pointer(input->data_ptr()), input->nbytes());
    options.setOutput<uint8_t>(pointer(call_.output.data_ptr()), {part_bytes.begin(), part_bytes.end()});
    options.setTag(tag_);
    gloo::allgatherv(options);
  }

  void all_reduce() {
    if (call_.input.numel() == 0) return;
    const Rows part_bytes = scaled(chunks(call_.input.numel(), n_), static_cast<int64_t>(call_.input.element_size()));
    reduce(part_bytes, bytes_of(call_.output) + starts(part_bytes)[me_]);
    gather(nullptr, part_bytes);
  }

  void all_gather() {
    const Rows part_bytes = scaled(call_.output_splits, row_bytes(call_.input));
    if (sum(part_bytes) > 0) gather(&call_.input, part_bytes);
  }

  void broadcast() {
    if (call_.output.numel() == 0) return;
    gloo::BroadcastOptions options(context_);
    options.setOutput<uint8_t>(pointer(call_.output.data_ptr()), call_.output.nbytes());
    options.setRoot(call_.peer);
    options.setTag(tag_);
    gloo::broadcast(options);
  }

  void barrier() {
    gloo::BarrierOptions options(context_);
    options.setTag(tag_);
    gloo::barrier(options);
  }

  const Call& call_;
  int64_t n_;
  size_t me_;
  uint32_t tag_;
  std::shared_ptr<gloo::Context> context_;
};

// Number of children that Gloo's binomial broadcast tree gives the member at distance `place` from the root.
int tree_children(int n, int place) {
  int children = 0;
  for (int bit = 1; bit < n && (place & (2 * bit - 1)) == 0; bit *= 2)
    if (place + bit < n) ++children;
  return children;
}

using Buffers = std::array<std::unique_ptr<gloo::transport::UnboundBuffer>, 2>;  // the sender's, the receiver's

[[noreturn]] void rethrow(const Exchange& exchange, int seat, const std::exception& error) {
  if (const auto exhausted = as_exhausted(error)) throw *exhausted;
  const Call& call = exchange.seats[static_cast<size_t>(seat)].call;
  throw Error(ErrorKind::kCommunication,
              {.where = exchange.channel->label + " call #" + std::to_string(exchange.sequence) + ", " + describe(call),
               .what = "Gloo failed",
               .got = error.what(),
               .want = "a working transport",
               .fix = "try --collectives direct, or --transport inproc; with TCP check that 127.0.0.1 is reachable"});
}

}  // namespace

void GlooMover::matched(Exchange& exchange) {
  const Call& first = exchange.seats[0].call;
  if (exchange.channel->is_message && first.input.nbytes() > 0) {
    // Slots of Gloo's own verbs have small prefixes in the top byte.
    const uint64_t slot = (uint64_t{0x7f} << 56) | group_->next_message();
    const int from = exchange.seats[1].call.peer;
    const int to = first.peer;
    auto buffers = std::make_shared<Buffers>();
    (*buffers)[1] =
        group_->context(to)->createUnboundBuffer(exchange.seats[1].call.output.data_ptr(), first.input.nbytes());
    (*buffers)[0] = group_->context(from)->createUnboundBuffer(first.input.data_ptr(), first.input.nbytes());
    (*buffers)[1]->recv(from, slot);
    (*buffers)[0]->send(to, slot);
    exchange.baggage = std::move(buffers);
  }
  exchange.tell(Phase::kMatched);
}

void GlooMover::complete(Exchange& exchange, int seat) {
  try {
    if (!exchange.channel->is_message) return Part(exchange, seat, group_->context(seat)).run();
    if (!exchange.baggage) return;
    auto& buffers = *static_cast<Buffers*>(exchange.baggage.get());
    if (seat == 0) {
      buffers[0]->waitSend(group_->timeout());
    } else {
      buffers[1]->waitRecv(group_->timeout());
    }
  } catch (const std::exception& error) {
    group_->close();
    rethrow(exchange, seat, error);
  }
}

// Only messages are polled (collectives that are not waited for at once run on a CommThread). Both ends were issued
// when the call matched, so this waits only for the bytes.
bool GlooMover::poll(Exchange& exchange, int /*seat*/) { return exchange.current() == Phase::kMatched; }

int64_t GlooMover::wire_bytes(const Exchange& exchange, int seat) const {
  const auto n = static_cast<int64_t>(exchange.seats.size());
  const auto me = static_cast<size_t>(seat);
  const Call& call = exchange.seats[me].call;
  const int64_t bytes = call.input.defined() ? static_cast<int64_t>(call.input.nbytes()) : 0;
  switch (call.verb) {
    case Verb::kAllReduce: {
      const int64_t mine = chunks(call.input.numel(), n)[me] * static_cast<int64_t>(call.input.element_size());
      return bytes - mine + (n - 1) * mine;  // parts to their owners, then n - 1 parts of about `mine` on the ring
    }
    case Verb::kReduceScatter:
    case Verb::kAllToAll:
      return bytes - call.input_splits[me] * row_bytes(call.input);
    case Verb::kAllGather:
      // The ring forwards every part except that of the next member.
      return (sum(call.output_splits) - call.output_splits[(me + 1) % static_cast<size_t>(n)]) * row_bytes(call.input);
    case Verb::kBroadcast:
      return bytes * tree_children(static_cast<int>(n), (seat - call.peer + static_cast<int>(n)) % static_cast<int>(n));
    case Verb::kSend:
      return bytes;
    case Verb::kRecv:
    case Verb::kBarrier:
    case Verb::kCount:
      break;
  }
  return 0;
}

}  // namespace ranklab::cpu_sim
