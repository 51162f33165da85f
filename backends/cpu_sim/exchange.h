// One call of one group, or one message: from the first member's posting until the bytes have moved. Every member has a
// seat. Thread rule: seats, posted and first_seat are guarded by the watch's mutex until the exchange is matched, and
// are then read-only except that a member may release its own tensors once its part is complete.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu_sim/pause.h"
#include "core/comm/call.h"
#include "core/comm/device_queues.h"
#include "core/comm/tree_reduce.h"

namespace ranklab::cpu_sim {

// kOpen: members are missing. kMatched: all have posted and agree. kDone: the outputs are valid (direct mover; Gloo
// completes seat by seat), or enqueued (device mover). kAborted: the world failed before the call was matched.
enum class Phase : uint32_t { kOpen, kMatched, kDone, kAborted };

struct ChannelInfo {
  std::string label;       // "tp[0 1]", or "pp[0 4] message 0 -> 4 tag 0"
  std::vector<int> ranks;  // global rank of each seat
  bool is_message = false;
};

struct Seat {
  Call call;
  int64_t posted_wall_ns = 0;
  bool posted = false;
  QueueMarkPtr ready = {};  // on a device: recorded after the kernels that produce the call's tensors
};

// A part of a direct transfer, executed by one thread. A copy has `from`. A reduction reads elements [offset, offset +
// count) of every input and writes them to every output (seat -1), or to one seat's output, starting at its first
// element.
struct Piece {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  int64_t offset = 0;
  int64_t count = 0;  // bytes for a copy, elements for a reduction
};

// The pieces [begin, end) of a plan that one queue holds, in the order of execution.
struct PieceQueue {
  size_t end = 0;
  std::atomic<size_t> next{0};
};

struct Exchange {
  Exchange(std::shared_ptr<const ChannelInfo> channel_info, int64_t sequence_number)
      : channel(std::move(channel_info)), sequence(sequence_number), seats(channel->ranks.size()) {}

  const std::shared_ptr<const ChannelInfo> channel;
  const int64_t sequence;
  std::vector<Seat> seats;
  int posted = 0;
  int first_seat = -1;  // seat of the first poster, with whose call the others are compared
  // two of its calls differ; the other members may still post theirs, to show which one is the odd one out
  bool disputed = false;

  std::atomic<uint32_t> phase{static_cast<uint32_t>(Phase::kOpen)};
  int64_t matched_virtual_ns = 0;
  int64_t matched_bytes = 0;
  int64_t matched_wall_ns = 0;
  int64_t serial = 0;  // between processes: index of the match within the world, the same on every member

  // Direct mover. Pieces are grouped by the seat whose output they write, one queue each.
  std::vector<Piece> pieces;
  std::vector<size_t> queue_ends;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  Reduction reduction;
  std::unique_ptr<PieceQueue[]> queues;  // null if the last poster did everything
  size_t queue_count = 0;
  std::atomic<size_t> pieces_left{0};
  int64_t done_wall_ns = 0;
  // Gloo mover: the two buffers of a message. Device mover: the event recorded after the transfer.
  std::shared_ptr<void> baggage;
  std::atomic<bool> abandoned{false};  // device mover: some member will not wait

  Phase current() const { return static_cast<Phase>(phase.load(std::memory_order_acquire)); }
  void set(Phase next) { store_for_waiters(phase, static_cast<uint32_t>(next)); }
  void tell(Phase next) { notify_waiters(phase, static_cast<uint32_t>(next)); }
  bool complete() const { return posted == static_cast<int>(seats.size()); }
};
using ExchangePtr = std::shared_ptr<Exchange>;

}  // namespace ranklab::cpu_sim
