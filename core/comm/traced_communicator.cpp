#include "core/comm/traced_communicator.h"

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "core/base/text.h"
#include "core/comm/call_check.h"
#include "core/comm/call_watch.h"
#include "core/comm/purpose.h"
#include "core/comm/traced_peer_memory.h"
#include "core/comm/unsettled_calls.h"
#include "core/sim/op_cost.h"
#include "core/sim/type_watch.h"
#include "core/trace/boundary.h"
#include "core/trace/failed_event.h"

namespace ranklab {
namespace {

struct Lane;
class RepeatableRecord;

// One call, from posting until its times are known.
struct Record {
  Lane* lane = nullptr;
  WorkPtr inner;
  bool blocking = false;
  Event event;
  std::vector<double> sent_bytes;  // of an all_to_all, to each member
  int64_t away_bytes = 0;          // bytes sent to other members than itself
  TransferCost cost;
  int message_from = -1;  // group ranks of a message's ends; -1 for a collective
  int message_to = -1;
  bool resolved = false;
  bool traced = true;                            // false: a repeated call whose event is not recorded
  std::shared_ptr<RepeatableRecord> repeatable;  // gets a copy when the times are known; null: nobody repeats the call
};
using RecordPtr = std::shared_ptr<Record>;

// A lane on which calls follow one another: the group's collectives, or the messages of one ordered pair and tag. Both
// ends of a lane see the same calls in the same order, so they compute the same times. (Messages of different tags may
// be posted in different orders at their two ends, hence a lane per tag: their transfers may overlap.)
struct Lane {
  std::deque<RecordPtr> pending;
  int64_t free_ns = 0;  // virtual end of the lane's last call
};

// The bytes of an all_to_all sent to, or received from, each member.
std::vector<int64_t> bytes_of_members(const at::Tensor& tensor, const std::vector<int64_t>& rows) {
  const int64_t count = tensor.size(0), row_bytes = count == 0 ? 0 : static_cast<int64_t>(tensor.nbytes()) / count;
  std::vector<int64_t> bytes;
  for (const int64_t split : rows) bytes.push_back(split * row_bytes);
  return bytes;
}

int64_t others(const std::vector<int64_t>& bytes, int rank) {
  return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}) - bytes[static_cast<size_t>(rank)];
}

class TracedCommunicator;

class TracedCommunicator final : public Communicator,
                                 public OffersPeerMemory,
                                 public std::enable_shared_from_this<TracedCommunicator> {
 public:
  TracedCommunicator(CommunicatorPtr inner, VirtualClock* clock, Tracer* tracer, std::unique_ptr<LinkCost> cost)
      : Communicator(inner->group()),
        inner_(std::move(inner)),
        clock_(clock),
        tracer_(tracer),
        cost_(std::move(cost)),
        unsettled_(tracer) {
    if (tracer_ != nullptr) tracer_->set_group(group().axis, group().global_ranks);
  }

  WorkPtr post(Call call) override;
  bool open_lanes(const std::vector<MessageLane>& lanes) override { return inner_->open_lanes(lanes); }
  PeerMemoryPtr peer_memory() override {
    PeerMemoryPtr inner = peer_memory_of(*inner_);
    return inner ? make_traced_peer_memory(std::move(inner), clock_, tracer_, cost_.get()) : nullptr;
  }
  Observers observers() const { return {clock_, tracer_}; }
  // Computes the times of `record` and of everything before it on its lane.
  void resolve(const RecordPtr& record);
  // A debugger may pause the rank before it posts and before it waits.
  void at_boundary(BoundaryKind kind, Verb verb, int peer, int tag, TypeChange types = {});
  // Moves the compute stream to the end of the call, and records the event.
  void resume_after(Record& record);
  // A call like `like`, posted now. REQUIRES: all calls on its lane are resolved.
  RecordPtr repeated(const Record& like, bool traced);
  // Records that the run failed while the rank was in this call. Only the mark of the failure follows in its trace
  // (failed_event.h).
  void record_unfinished(const Event& call);

 private:
  Lane& lane(const Record& record, int tag) {
    return lanes_[{record.message_from, record.message_to, record.message_from < 0 ? 0 : tag}];
  }
  Event new_event(const Call& call) const;
  // Fills in what the call is charged for; for an uneven all_to_all, the bytes in its busier direction.
  void charge(Record& record, Call& call) const;
  void set_times(Record& record);
  // A call that all members have posted by `matched_ns` follows the lane's last one.
  static void take_lane(Record& record, int64_t matched_ns);

  CommunicatorPtr inner_;
  VirtualClock* clock_;
  Tracer* tracer_;
  std::unique_ptr<LinkCost> cost_;
  std::map<std::tuple<int, int, int>, Lane> lanes_;
  UnsettledCalls unsettled_;
};

class RepeatedWork final : public Work {
 public:
  RepeatedWork(std::shared_ptr<TracedCommunicator> comm, RecordPtr record)
      : comm_(std::move(comm)), record_(std::move(record)) {}

  at::Tensor wait() override {
    if (!std::exchange(waited_, true)) comm_->resume_after(*record_);
    return {};
  }
  bool is_completed() const override { return true; }
  CallTimes times() const override { return {}; }

 private:
  std::shared_ptr<TracedCommunicator> comm_;
  RecordPtr record_;
  bool waited_ = false;
};

class RepeatableRecord final : public RepeatableCall {
 public:
  RepeatableRecord(TracedCommunicator& comm, Lane& lane) : comm_(comm), lane_(lane) {}

  void copy(const Record& resolved) {
    record_ = resolved;
    record_.inner.reset();
    record_.repeatable.reset();
  }
  WorkPtr repeat(bool traced) override {
    if (!lane_.pending.empty()) comm_.resolve(lane_.pending.back());
    return std::make_shared<RepeatedWork>(comm_.shared_from_this(), comm_.repeated(record_, traced));
  }

 private:
  TracedCommunicator& comm_;
  Lane& lane_;
  Record record_;
};

class TracedWork final : public Work {
 public:
  TracedWork(std::shared_ptr<TracedCommunicator> comm, RecordPtr record)
      : comm_(std::move(comm)), record_(std::move(record)) {}

  at::Tensor wait() override {
    if (!waited_ && !record_->blocking)
      comm_->at_boundary(BoundaryKind::kWait, record_->event.verb, record_->event.peer, record_->event.tag);
    at::Tensor output;
    try {
      output = record_->inner->wait();
    } catch (...) {
      comm_->record_unfinished(record_->event);
      throw;
    }
    comm_->resolve(record_);
    if (!std::exchange(waited_, true)) resume();
    return output;
  }
  bool is_completed() const override { return record_->inner->is_completed(); }
  CallTimes times() const override { return record_->inner->times(); }

 private:
  void resume() {
    CallWatch* const watch = call_watch_of_thread;
    if (watch == nullptr) return comm_->resume_after(*record_);
    watch->waits(*this);
    comm_->resume_after(*record_);
    watch->waited(*this);
  }

  std::shared_ptr<TracedCommunicator> comm_;
  RecordPtr record_;
  bool waited_ = false;
};

Event TracedCommunicator::new_event(const Call& call) const {
  Event event;
  event.kind = EventKind::kCollective;
  event.axis = group().axis;
  event.verb = call.verb;
  event.purpose = thread_purpose();
  if (const at::Tensor& tensor = payload(call); tensor.defined()) event.dtype = dtype_of(tensor.scalar_type());
  event.peer = call.peer;
  event.tag = call.tag;
  event.logical_bytes = logical_bytes(call);
  if (clock_ != nullptr) event.virtual_posted_ns = clock_->now_ns();
  if (tracer_ != nullptr) {
    event.name = tracer_->intern(name(call.verb));
    event.step = tracer_->step();
    event.microbatch = tracer_->microbatch();
  }
  return event;
}

void TracedCommunicator::at_boundary(BoundaryKind kind, Verb verb, int peer, int tag, TypeChange types) {
  if (tracer_ == nullptr || !tracer_->has_stepper()) return;
  const std::vector<int>& ranks = group().global_ranks;
  tracer_->at_boundary({.kind = kind,
                        .name = std::string(name(verb)),
                        .axis = group().axis,
                        .verb = verb,
                        .group = ranks,
                        .peer = peer >= 0 ? ranks[static_cast<size_t>(peer)] : -1,
                        .tag = tag,
                        .types = types,
                        .virtual_ns = clock_ != nullptr ? clock_->now_ns() : 0});
}

WorkPtr TracedCommunicator::post(Call call) {
  unsettled_.settle(/*wait=*/false);
  TypeWatch* const watch = type_watch_of_thread;
  const TypeChange types = watch != nullptr ? watch->called(call, group()) : TypeChange();
  at_boundary(BoundaryKind::kPost, call.verb, call.peer, call.tag, types);
  auto record = std::make_shared<Record>();
  record->event = new_event(call);
  record->event.types = types;
  record->blocking = call.blocking;
  if (call.verb == Verb::kSend) std::tie(record->message_from, record->message_to) = std::pair(rank(), call.peer);
  if (call.verb == Verb::kRecv) std::tie(record->message_from, record->message_to) = std::pair(call.peer, rank());
  call.posted_virtual_ns = clock_ != nullptr ? clock_->now_ns() : 0;
  charge(*record, call);
  record->lane = &lane(*record, call.tag);
  try {
    record->inner = inner_->post(std::move(call));
  } catch (...) {
    record_unfinished(record->event);
    throw;
  }
  record->lane->pending.push_back(record);
  auto work = std::make_shared<TracedWork>(shared_from_this(), record);
  if (call_watch_of_thread != nullptr) {
    record->repeatable = std::make_shared<RepeatableRecord>(*this, *record->lane);
    call_watch_of_thread->posted(*work, group().axis, record->repeatable);
  }
  return work;
}

void TracedCommunicator::record_unfinished(const Event& call) {
  if (tracer_ == nullptr || !tracer_->enabled()) return;
  Event event;
  event.kind = EventKind::kInstant;
  event.name = tracer_->intern(std::string(kUnfinishedCall) + std::string(name(call.verb)) + " on " +
                               std::string(name(call.axis)) + ", " + std::string(name(call.dtype)) + ", " +
                               human_bytes(call.logical_bytes));
  event.step = call.step;
  event.microbatch = call.microbatch;
  if (clock_ != nullptr) event.virtual_begin_ns = event.virtual_end_ns = clock_->now_ns();
  event.wall_begin_ns = event.wall_end_ns = wall_now_ns();
  tracer_->record(event);
}

void TracedCommunicator::charge(Record& record, Call& call) const {
  if (call.verb != Verb::kAllToAll) {
    call.posted_bytes = logical_bytes(call);
    return;
  }
  const std::vector<int64_t> sent = bytes_of_members(call.input, call.input_splits);
  const std::vector<int64_t> received = bytes_of_members(call.output, call.output_splits);
  record.away_bytes = others(sent, rank());
  // The longer of sending and receiving counts.
  call.posted_bytes = cost_ == nullptr
                          ? std::max(record.away_bytes, others(received, rank()))
                          : std::max(cost_->exchange_bytes(sent, rank()), cost_->exchange_bytes(received, rank()));
  if (tracer_ != nullptr && tracer_->enabled()) record.sent_bytes.assign(sent.begin(), sent.end());
}

void TracedCommunicator::set_times(Record& record) {
  const CallTimes times = record.inner->times();
  Event& event = record.event;
  event.sequence = times.sequence;
  event.wire_bytes = times.wire_bytes;
  set_wall_times(event, times);
  if (cost_ != nullptr) {
    record.cost = record.message_from < 0 ? cost_->collective(event.verb, times.matched_bytes)
                                          : cost_->message(record.message_from, record.message_to, times.matched_bytes);
    event.algorithm_bytes = event.verb == Verb::kAllToAll ? record.away_bytes : record.cost.algorithm_bytes;
  }
  if (clock_ != nullptr) take_lane(record, times.matched_virtual_ns);
  record.resolved = true;
  if (record.repeatable) record.repeatable->copy(record);
}

void TracedCommunicator::take_lane(Record& record, int64_t matched_ns) {
  Event& event = record.event;
  event.virtual_matched_ns = matched_ns;
  event.virtual_begin_ns = std::max(matched_ns, record.lane->free_ns);
  event.virtual_first_byte_ns = event.virtual_begin_ns + record.cost.latency_ns;
  event.virtual_end_ns = event.virtual_begin_ns + record.cost.total_ns;
  record.lane->free_ns = event.virtual_end_ns;
}

RecordPtr TracedCommunicator::repeated(const Record& like, bool traced) {
  auto record = std::make_shared<Record>(like);
  record->traced = traced;
  if (tracer_ != nullptr) record->event.microbatch = tracer_->microbatch();
  if (clock_ == nullptr) return record;
  record->event.virtual_posted_ns = clock_->now_ns();
  take_lane(*record, clock_->now_ns() + like.event.virtual_matched_ns - like.event.virtual_posted_ns);
  return record;
}

void TracedCommunicator::resolve(const RecordPtr& record) {
  if (record->resolved) return;
  Lane& on = *record->lane;
  while (!record->resolved) {
    const RecordPtr next = on.pending.front();
    next->inner->wait();  // it was matched before `record`, so this waits at most for bytes, never for a peer's call
    set_times(*next);
    on.pending.pop_front();
  }
}

void TracedCommunicator::resume_after(Record& record) {
  if (clock_ != nullptr) {
    const WaitSplit lost = clock_->wait_until(record.event.virtual_end_ns, record.cost.total_ns, group().axis);
    record.event.virtual_exposed_ns = lost.exposed_ns;
    record.event.virtual_peer_wait_ns = lost.peer_wait_ns;
  }
  if (tracer_ == nullptr || !record.traced) return;
  if (!tracer_->enabled()) return;
  if (const auto* later = dynamic_cast<const OffersTiming*>(record.inner.get()))
    return unsettled_.add(record.event, std::move(record.sent_bytes), later->timing());
  record_call(*tracer_, record.event, std::move(record.sent_bytes));
}

}  // namespace

Observers observers_of(Communicator& comm) {
  const auto* const traced = dynamic_cast<const TracedCommunicator*>(&comm);
  return traced != nullptr ? traced->observers() : Observers{};
}

CommunicatorPtr make_traced_communicator(CommunicatorPtr inner, VirtualClock* clock, Tracer* tracer,
                                         std::unique_ptr<LinkCost> cost) {
  return std::make_shared<TracedCommunicator>(std::move(inner), clock, tracer, std::move(cost));
}

}  // namespace ranklab
