#include "backends/cpu_sim/processes/process_mover.h"

#include <gloo/transport/unbound_buffer.h>

#include "core/base/exhausted.h"
#include "core/comm/call_check.h"

namespace ranklab::cpu_sim {
namespace {

using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

// Longer than the silence after which the coordinator declares a process lost.
constexpr std::chrono::milliseconds kMoveVerdictWithin{3'000};

}  // namespace

void ProcessMover::matched(Exchange& exchange) {
  if (exchange.channel->is_message) {
    const bool sends = exchange.seats[0].posted;
    const Call& call = exchange.seats[sends ? 0 : 1].call;
    const at::Tensor& tensor = sends ? call.input : call.output;
    if (tensor.nbytes() > 0) {
      // Slots of Gloo's own verbs have small prefixes in the top byte.
      const uint64_t slot = (uint64_t{0x7f} << 56) | static_cast<uint64_t>(exchange.serial);
      const std::vector<int>& ranks = exchange.channel->ranks;
      auto buffer = std::make_shared<Buffer>(
          mesh_->context(ranks[sends ? 0 : 1])->createUnboundBuffer(tensor.data_ptr(), tensor.nbytes()));
      if (sends) (*buffer)->send(ranks[1], slot);
      if (!sends) (*buffer)->recv(ranks[0], slot);
      exchange.baggage = std::move(buffer);
    }
  }
  exchange.tell(Phase::kMatched);
}

void ProcessMover::complete(Exchange& exchange, int seat) {
  try {
    if (!exchange.channel->is_message) return collectives_.complete(exchange, seat);
    if (!exchange.baggage) return;
    Buffer& buffer = *static_cast<Buffer*>(exchange.baggage.get());
    if (seat == 0) buffer->waitSend(mesh_->timeout());
    if (seat == 1) buffer->waitRecv(mesh_->timeout());
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kEnvironment) throw;
    fail(exchange, seat, Error(error.kind(), {.what = error.text().got}));
  } catch (const std::exception& error) {
    if (const auto exhausted = as_exhausted(error)) throw *exhausted;
    fail(exchange, seat, error);
  }
}

void ProcessMover::fail(const Exchange& exchange, int seat, const std::exception& error) {
  if (const auto failure = control_.wait_failure(kMoveVerdictWithin)) throw failure->mine;
  const Call& call = exchange.seats[static_cast<size_t>(seat)].call;
  throw Error(ErrorKind::kCommunication,
              {.where = exchange.channel->label + " call #" + std::to_string(exchange.sequence) + ", " + describe(call),
               .what = "the bytes could not be moved",
               .got = error.what(),
               .want = "a working TCP connection between the members",
               .fix = "check that the hosts reach each other on every port, not only on MASTER_PORT"});
}

}  // namespace ranklab::cpu_sim
