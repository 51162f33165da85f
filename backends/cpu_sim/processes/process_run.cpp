#include "backends/cpu_sim/processes/process_run.h"

#include <algorithm>

#include "backends/cpu_sim/processes/wire.h"
#include "core/base/exhausted.h"
#include "core/trace/tracer.h"

namespace ranklab::cpu_sim {
namespace {

// If the coordinator still runs, it answers a failure at once.
constexpr std::chrono::milliseconds kVerdictWithin{2'000};

}  // namespace

ProcessRun::ProcessRun(Control& control, const DataPlane& plane, int rank, int number)
    : control_(control), plane_(plane), rank_(rank), number_(number) {
  control_.listen({[this](const Frame& frame) { on_frame(frame); }, [this] { on_failure(); }});
  if (control_.failure()) on_failure();
}

ProcessRun::~ProcessRun() {
  control_.listen({});
  join_comm_threads();
}

Channel& ProcessRun::channel(const ChannelInfo& info) {
  std::unique_lock lock(mutex_);
  Channel& found = channels_[info.label];
  if (found.info) return found;
  found.info = std::make_shared<const ChannelInfo>(info);
  found.next.assign(info.ranks.size(), 0);
  const auto number = static_cast<int64_t>(numbers_.size());
  numbers_[found.info.get()] = number;
  lock.unlock();
  control_.send(FrameType::kChannel,
                Packer().number(number).text(info.label).numbers(info.ranks).number(info.is_message ? 1 : 0).bytes(),
                /*deferred=*/true);
  return found;
}

ExchangePtr ProcessRun::post(Channel& channel, int seat, Call call, Mover& mover) {
  const auto index = static_cast<size_t>(seat);
  Packer packer;
  ExchangePtr exchange;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) throw abort_error(rank_);
    exchange = std::make_shared<Exchange>(channel.info, channel.next[index]++);
    const int64_t number = numbers_.at(channel.info.get());
    packer.number(number).number(exchange->sequence);
    pack_call(packer, call);
    exchange->seats[index] = {std::move(call), wall_now_ns(), true};
    exchange->posted = 1;
    exchange->first_seat = seat;
    open_[{number, exchange->sequence}] = {exchange, &mover};
  }
  control_.send(FrameType::kPost, packer.bytes());
  return exchange;
}

// Posting a blocking call has reported this already.
void ProcessRun::block(int /*rank*/, const ExchangePtr& exchange) {
  if (exchange->seats[static_cast<size_t>(exchange->first_seat)].call.blocking) return;
  control_.send(FrameType::kWait, Packer().number(number_of(*exchange)).number(exchange->sequence).bytes());
}

void ProcessRun::finished_call(int /*rank*/, const Exchange& exchange, int /*seat*/, int64_t /*now_ns*/) {
  control_.send(FrameType::kFinished, Packer().number(number_of(exchange)).number(exchange.sequence).bytes(),
                /*deferred=*/true);
}

int64_t ProcessRun::number_of(const Exchange& exchange) {
  const std::lock_guard lock(mutex_);
  return numbers_.at(exchange.channel.get());
}

Error ProcessRun::abort_error(int /*rank*/) { return control_.failure().value().mine; }

void ProcessRun::body_returned(int /*rank*/) { control_.send(FrameType::kReturned); }

void ProcessRun::body_failed(int /*rank*/, const Error& error) {
  Packer packer;
  pack_error(packer, error);
  control_.send(FrameType::kFailed, packer.bytes());
  if (!control_.wait_failure(kVerdictWithin)) control_.fail({error, error, false});
}

std::shared_ptr<Mover> ProcessRun::mover(const std::string& label, const Group& group) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<ProcessMover>& mover = movers_[label];
  if (mover) return mover;
  const int seat = group.group_rank;
  const std::string name = "run" + std::to_string(number_) + "/" + label;
  const auto connect = [this, seat, ranks = group.global_ranks, name] {
    GlooContexts contexts(ranks.size());
    contexts[static_cast<size_t>(seat)] = plane_.links->context(name, ranks, seat, plane_.timeout);
    return contexts;
  };
  const int size = group.size();
  mover =
      std::make_shared<ProcessMover>(control_, std::make_shared<GlooGroup>(size, plane_.timeout, connect), plane_.mesh);
  return mover;
}

void ProcessRun::on_frame(const Frame& frame) {
  if (frame.type == FrameType::kEnded) {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    return changed_.notify_all();
  }
  Unpacker in(frame.payload);
  const int64_t number = in.number();
  const int64_t sequence = in.number();
  Open open;
  {
    const std::lock_guard lock(mutex_);
    const auto found = open_.find({number, sequence});
    if (found == open_.end()) return;
    open = found->second;
    open_.erase(found);
  }
  Exchange& exchange = *open.exchange;
  exchange.matched_virtual_ns = in.number();
  exchange.matched_bytes = in.number();
  exchange.serial = in.number();
  exchange.matched_wall_ns = wall_now_ns();
  try {
    open.mover->matched(exchange);
  } catch (const std::exception& error) {
    // Most likely the peer of a message is gone. The coordinator reports which, unless it does not know yet.
    Packer packer;
    pack_error(packer, as_exhausted(error).value_or(
                           Error(ErrorKind::kCommunication, {.where = exchange.channel->label,
                                                             .what = "the bytes could not be moved",
                                                             .got = error.what(),
                                                             .want = "a working TCP connection between the members",
                                                             .fix = "see what the peer wrote last"})));
    control_.send(FrameType::kFailed, packer.bytes());
    const std::lock_guard lock(mutex_);
    if (!failed_) {
      open_[{number, sequence}] = open;  // on_failure() aborts it
      return;
    }
    exchange.tell(Phase::kAborted);
  }
}

void ProcessRun::on_failure() {
  const std::lock_guard lock(mutex_);
  failed_ = true;
  for (auto& [key, open] : open_) open.exchange->tell(Phase::kAborted);
  open_.clear();
  plane_.links->fail("the world failed");  // wakes whoever is inside Gloo
  changed_.notify_all();
}

void ProcessRun::wait_end() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ || failed_; });
}

}  // namespace ranklab::cpu_sim
