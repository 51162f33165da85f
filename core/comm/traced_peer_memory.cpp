#include "core/comm/traced_peer_memory.h"

#include <algorithm>
#include <utility>

#include "core/comm/purpose.h"

namespace ranklab {
namespace {

constexpr int kPutTag = 1 << 20;  // distinct from the tags of send and recv

class TracedPeerMemory final : public PeerMemory {
 public:
  TracedPeerMemory(PeerMemoryPtr inner, VirtualClock* clock, Tracer* tracer, const LinkCost* cost)
      : inner_(std::move(inner)),
        clock_(clock),
        tracer_(tracer),
        cost_(cost),
        next_number_(static_cast<size_t>(inner_->group().size())) {}

  const Group& group() const override { return inner_->group(); }

  void put(int peer, const at::Tensor& rows, PutNote note) override {
    const int self = group().group_rank;
    note.source = self;
    note.number = next_number_[static_cast<size_t>(peer)]++;
    note.bytes = static_cast<int64_t>(rows.nbytes());
    note.wall_ns = wall_now_ns();
    TransferCost cost;
    if (clock_ != nullptr) {
      if (cost_ != nullptr) cost = cost_->message(self, peer, note.bytes);
      note.virtual_posted_ns = clock_->now_ns();
      note.virtual_begin_ns = std::max(note.virtual_posted_ns, free_ns_);
      note.virtual_end_ns = note.virtual_begin_ns + cost.total_ns;
      // The link is free for the next put once the bytes have left it; the latency is spent in flight.
      if (peer != self) free_ns_ = note.virtual_end_ns - cost.latency_ns;
    }
    inner_->put(peer, rows, note);
    if (peer != self) record(note, Verb::kSend, peer, {});
  }

  void finish(std::source_location site) override { inner_->finish(site); }

  Delivery take() override {
    const int64_t asked_ns = clock_ != nullptr ? clock_->now_ns() : 0;
    Delivery delivery = inner_->take();
    // Sorted, so that the order does not depend on arrival.
    std::sort(delivery.notes.begin(), delivery.notes.end(), [](const PutNote& a, const PutNote& b) {
      return std::pair(a.source, a.number) < std::pair(b.source, b.number);
    });
    for (const PutNote& note : delivery.notes) {
      if (note.source == group().group_rank) continue;
      WaitSplit lost;
      if (clock_ != nullptr)
        lost = clock_->wait_until(note.virtual_end_ns, note.virtual_end_ns - note.virtual_begin_ns, group().axis);
      PutNote seen = note;
      // a put does not need the receiver to be ready
      seen.virtual_posted_ns = std::min(asked_ns, note.virtual_begin_ns);
      record(seen, Verb::kRecv, note.source, lost);
    }
    return delivery;
  }

 private:
  void record(const PutNote& note, Verb verb, int peer, const WaitSplit& lost) {
    if (tracer_ == nullptr) return;
    Event event;
    event.kind = EventKind::kCollective;
    event.axis = group().axis;
    event.verb = verb;
    event.purpose = thread_purpose();
    event.dtype = DType::kUInt8;
    event.name = tracer_->intern(verb == Verb::kSend ? "put" : "take");
    event.step = tracer_->step();
    event.microbatch = tracer_->microbatch();
    event.peer = peer;
    event.tag = kPutTag;
    event.sequence = note.number;
    event.logical_bytes = event.algorithm_bytes = event.wire_bytes = note.bytes;
    event.virtual_posted_ns = note.virtual_posted_ns;
    event.virtual_matched_ns = event.virtual_begin_ns = event.virtual_first_byte_ns = note.virtual_begin_ns;
    event.virtual_end_ns = note.virtual_end_ns;
    event.virtual_exposed_ns = lost.exposed_ns;
    event.virtual_peer_wait_ns = lost.peer_wait_ns;
    event.wall_begin_ns = event.wall_matched_ns = note.wall_ns;
    event.wall_end_ns = wall_now_ns();
    tracer_->record(event);
  }

  PeerMemoryPtr inner_;
  VirtualClock* clock_;
  Tracer* tracer_;
  const LinkCost* cost_;
  std::vector<int64_t> next_number_;  // to each peer
  int64_t free_ns_ = 0;               // when this rank's outgoing link is free
};

}  // namespace

PeerMemoryPtr make_traced_peer_memory(PeerMemoryPtr inner, VirtualClock* clock, Tracer* tracer, const LinkCost* cost) {
  return std::make_shared<TracedPeerMemory>(std::move(inner), clock, tracer, cost);
}

}  // namespace ranklab
