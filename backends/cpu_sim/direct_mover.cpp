#include "backends/cpu_sim/direct_mover.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <thread>

#include "backends/cpu_sim/layout.h"
#include "backends/cpu_sim/pause.h"
#include "core/sim/op_cost.h"
#include "core/trace/tracer.h"

namespace ranklab::cpu_sim {
namespace {

constexpr int64_t kCopyPieceBytes = 256 << 10;
constexpr int64_t kReducePieceBytes = 128 << 10;  // per input
// Below this many bytes touched, the last poster does the whole call itself: cheaper than waking a helper.
constexpr int64_t kInlineBytes = 512 << 10;

void add_copy(Exchange& e, const std::byte* from, std::byte* to, int64_t bytes) {
  if (from == to) return;
  for (int64_t done = 0; done < bytes; done += kCopyPieceBytes)
    e.pieces.push_back({from + done, to + done, 0, std::min(kCopyPieceBytes, bytes - done)});
}

// Adds pieces that reduce elements [begin, begin + count) of every input; to == nullptr writes to all outputs.
void add_reduction(Exchange& e, int64_t begin, int64_t count, std::byte* to, int64_t element_bytes) {
  const int64_t step = kReducePieceBytes / element_bytes;
  for (int64_t done = 0; done < count; done += step)
    e.pieces.push_back(
        {nullptr, to == nullptr ? nullptr : to + done * element_bytes, begin + done, std::min(step, count - done)});
}

// Ends a queue: the pieces added since the last call.
void end_queue(Exchange& e) { e.queue_ends.push_back(e.pieces.size()); }

void plan_reduction(Exchange& e) {
  const Call& first = e.seats[0].call;
  e.reduction = {dtype_of(first.input.scalar_type()), first.op, first.reduce_in_fp32};
  const auto element_bytes = static_cast<int64_t>(first.input.element_size());
  for (Seat& seat : e.seats) {
    e.inputs.push_back(seat.call.input.data_ptr());
    e.outputs.push_back(seat.call.output.data_ptr());
  }
  if (first.verb == Verb::kAllReduce) {
    add_reduction(e, 0, first.input.numel(), nullptr, element_bytes);
    return end_queue(e);
  }
  const int64_t row = row_elements(first.input);
  int64_t begin = 0;
  for (size_t s = 0; s < e.seats.size(); ++s) {
    const int64_t count = first.input_splits[s] * row;
    add_reduction(e, begin, count, static_cast<std::byte*>(e.outputs[s]), element_bytes);
    end_queue(e);
    begin += count;
  }
}

void plan_all_gather(Exchange& e) {
  const int64_t row = row_bytes(e.seats[0].call.input);
  const std::vector<int64_t> begin = starts(e.seats[0].call.output_splits);
  for (Seat& to : e.seats) {
    for (size_t s = 0; s < e.seats.size(); ++s)
      add_copy(e, bytes_of(e.seats[s].call.input), bytes_of(to.call.output) + begin[s] * row,
               static_cast<int64_t>(e.seats[s].call.input.nbytes()));
    end_queue(e);
  }
}

void plan_all_to_all(Exchange& e) {
  const int64_t row = row_bytes(e.seats[0].call.input);
  for (size_t to = 0; to < e.seats.size(); ++to) {
    const Call& receiver = e.seats[to].call;
    const std::vector<int64_t> into = starts(receiver.output_splits);
    for (size_t from = 0; from < e.seats.size(); ++from) {
      const Call& sender = e.seats[from].call;
      const int64_t begin = std::accumulate(sender.input_splits.begin(),
                                            sender.input_splits.begin() + static_cast<int64_t>(to), int64_t{0});
      add_copy(e, bytes_of(sender.input) + begin * row, bytes_of(receiver.output) + into[from] * row,
               sender.input_splits[to] * row);
    }
    end_queue(e);
  }
}

void plan(Exchange& e) {
  const Call& first = e.seats[0].call;
  switch (first.verb) {
    case Verb::kAllReduce:
    case Verb::kReduceScatter:
      return plan_reduction(e);
    case Verb::kAllGather:
      return plan_all_gather(e);
    case Verb::kAllToAll:
      return plan_all_to_all(e);
    case Verb::kBroadcast:
    case Verb::kSend:
    case Verb::kRecv:
    case Verb::kBarrier:
    case Verb::kCount:
      return;
  }
}

void run_piece(Exchange& e, const Piece& piece) {
  if (piece.from != nullptr) {
    std::memcpy(piece.to, piece.from, static_cast<size_t>(piece.count));
    return;
  }
  const int64_t offset_bytes = piece.offset * size_bytes(e.reduction.dtype);
  std::vector<const void*> inputs(e.inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<const std::byte*>(e.inputs[i]) + offset_bytes;
  std::vector<void*> outputs;
  if (piece.to != nullptr) {
    outputs.push_back(piece.to);
  } else {
    for (void* output : e.outputs) outputs.push_back(static_cast<std::byte*>(output) + offset_bytes);
  }
  tree_reduce(e.reduction, inputs, outputs, piece.count);
}

int64_t touched_bytes(const Exchange& e) {
  int64_t total = 0;
  const int64_t per_element = size_bytes(e.reduction.dtype) * static_cast<int64_t>(e.inputs.size());
  for (const Piece& piece : e.pieces) total += piece.from != nullptr ? piece.count : piece.count * per_element;
  return total;
}

void finish(Exchange& e) {
  e.done_wall_ns = wall_now_ns();
  e.tell(Phase::kDone);
}

// Executes pieces until none are left, starting with those of its own output: the member will read them, and helpers
// then do not fault in the same fresh pages. The thread that completes the last piece finishes the exchange.
void help(Exchange& e, int seat) {
  for (size_t k = 0; k < e.queue_count; ++k) {
    PieceQueue& queue = e.queues[(static_cast<size_t>(seat) + k) % e.queue_count];
    for (size_t i = queue.next.fetch_add(1, std::memory_order_relaxed); i < queue.end;
         i = queue.next.fetch_add(1, std::memory_order_relaxed)) {
      run_piece(e, e.pieces[i]);
      if (e.pieces_left.fetch_sub(1, std::memory_order_acq_rel) == 1) finish(e);
    }
  }
}

void make_queues(Exchange& e) {
  e.queue_count = e.queue_ends.size();
  e.queues = std::make_unique<PieceQueue[]>(e.queue_count);
  size_t begin = 0;
  for (size_t q = 0; q < e.queue_count; ++q) {
    e.queues[q].next.store(begin, std::memory_order_relaxed);
    e.queues[q].end = begin = e.queue_ends[q];
  }
}

}  // namespace

bool DirectMover::moves(Verb verb) {
  return verb == Verb::kAllReduce || verb == Verb::kReduceScatter || verb == Verb::kAllGather ||
         verb == Verb::kAllToAll;
}

void DirectMover::matched(Exchange& exchange) {
  plan(exchange);
  exchange.pieces_left.store(exchange.pieces.size(), std::memory_order_relaxed);
  if (touched_bytes(exchange) <= kInlineBytes) {
    for (const Piece& piece : exchange.pieces) run_piece(exchange, piece);
    return finish(exchange);
  }
  make_queues(exchange);
  exchange.set(Phase::kMatched);
  static const unsigned kCores = std::max(1U, std::thread::hardware_concurrency());
  const auto helpers = std::min<size_t>(kCores, exchange.seats.size() - 1);
  for (size_t i = 0; i < helpers; ++i) exchange.phase.notify_one();
}

void DirectMover::complete(Exchange& exchange, int seat) {
  help(exchange, seat);
  pause_while(exchange.phase, static_cast<uint32_t>(Phase::kMatched));
}

bool DirectMover::poll(Exchange& exchange, int seat) {
  help(exchange, seat);
  return exchange.current() == Phase::kDone;
}

int64_t DirectMover::wire_bytes(const Exchange& exchange, int seat) const { return read_by_peers(exchange, seat); }

int64_t read_by_peers(const Exchange& exchange, int seat) {
  const auto n = static_cast<int64_t>(exchange.seats.size());
  const Call& call = exchange.seats[static_cast<size_t>(seat)].call;
  const int64_t bytes = call.input.defined() ? static_cast<int64_t>(call.input.nbytes()) : 0;
  switch (call.verb) {
    case Verb::kAllReduce:
    case Verb::kSend:
      return bytes;
    case Verb::kReduceScatter:
    case Verb::kAllToAll:
      return bytes - call.input_splits[static_cast<size_t>(seat)] * row_bytes(call.input);
    case Verb::kAllGather:
      return bytes * (n - 1);
    case Verb::kBroadcast:
      return call.peer == seat ? bytes * (n - 1) : 0;
    case Verb::kRecv:
    case Verb::kBarrier:
    case Verb::kCount:
      break;
  }
  return 0;
}

}  // namespace ranklab::cpu_sim
