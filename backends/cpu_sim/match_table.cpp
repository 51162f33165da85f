#include "backends/cpu_sim/match_table.h"

#include <algorithm>
#include <utility>

#include "core/base/exhausted.h"
#include "core/base/text.h"
#include "core/comm/call_check.h"
#include "core/trace/tracer.h"

namespace ranklab::cpu_sim {
namespace {

std::string side(const Exchange& exchange, int seat, const Call& call) {
  return "rank " + std::to_string(exchange.channel->ranks[static_cast<size_t>(seat)]) + ": " + describe(call);
}

Error mismatch(const Exchange& exchange, int seat, const Call& call, int other, const std::string& what) {
  const Call& theirs = exchange.seats[static_cast<size_t>(other)].call;
  const int rank = exchange.channel->ranks[static_cast<size_t>(seat)];
  std::string got = side(exchange, other, theirs) + " | " + side(exchange, seat, call);
  if (other > seat) got = side(exchange, seat, call) + " | " + side(exchange, other, theirs);
  return Error(
      ErrorKind::kCommunication,
      {.where = "rank " + std::to_string(rank) + ", " + exchange.channel->label + " call #" +
                std::to_string(exchange.sequence),
       .what = "members disagree on the " + what,
       .got = std::move(got),
       .want = "the same " + what + " from every member, call by call",
       .fix = "compare the two call sites; an earlier call that one rank skipped or swapped shows up here too"});
}

}  // namespace

MatchTable::MatchTable(Watch& watch, bool same_call_site) : watch_(watch), same_call_site_(same_call_site) {
  watch_.on_poison([this] { abort_open(); });
}

Channel& MatchTable::channel(const ChannelInfo& info) {
  const std::lock_guard lock(watch_.mutex());
  Channel& found = channels_[info.label];
  if (!found.info) {
    found.info = std::make_shared<const ChannelInfo>(info);
    found.next.assign(info.ranks.size(), 0);
  }
  return found;
}

// The rows of an all_to_all concern each pair, so they are compared with every posted member; all else with one.
void MatchTable::check(const Channel& channel, const Exchange& exchange, int seat, const Call& call) {
  const auto compare = [&](int other) {
    const Call& theirs = exchange.seats[static_cast<size_t>(other)].call;
    const std::optional<std::string> what =
        channel.info->is_message ? message_disagreement(seat == 0 ? call : theirs, seat == 0 ? theirs : call)
                                 : disagreement(theirs, other, call, seat, same_call_site_);
    if (!what) return;
    const Error error = mismatch(exchange, seat, call, other, *what);
    watch_.poison(-1, channel.info->ranks, error);
    throw error;
  };
  if (exchange.first_seat < 0) return;
  compare(exchange.first_seat);
  if (call.verb != Verb::kAllToAll) return;
  for (size_t other = 0; other < exchange.seats.size(); ++other)
    if (exchange.seats[other].posted) compare(static_cast<int>(other));
}

ExchangePtr MatchTable::post(Channel& channel, int seat, Call call, Mover& mover) {
  const int64_t now_ns = wall_now_ns();
  QueueMarkPtr ready = mover.posting(call);
  std::unique_lock lock(watch_.mutex());
  watch_.enter(channel.info->ranks[static_cast<size_t>(seat)], now_ns);
  const int64_t sequence = channel.next[static_cast<size_t>(seat)]++;
  const auto index = static_cast<size_t>(sequence - channel.first_open);
  if (index == channel.open.size()) channel.open.push_back(std::make_shared<Exchange>(channel.info, sequence));
  ExchangePtr exchange = channel.open[index];
  check(channel, *exchange, seat, call);
  exchange->seats[static_cast<size_t>(seat)] = {std::move(call), now_ns, true, std::move(ready)};
  if (exchange->first_seat < 0) exchange->first_seat = seat;
  ++exchange->posted;
  if (!exchange->complete()) {
    watch_.joined(*exchange);
    return exchange;
  }
  match(channel, *exchange);
  lock.unlock();
  try {
    mover.matched(*exchange);
  } catch (const std::exception& error) {
    fail(*exchange, seat, error);
  }
  return exchange;
}

// The mover could not start, and nobody else will start it: the exchange is no longer open, so it is aborted here.
void MatchTable::fail(Exchange& exchange, int seat, const std::exception& cause) {
  const Error error = as_exhausted(cause).value_or(Error(
      ErrorKind::kCommunication, {.where = exchange.channel->label + " call #" + std::to_string(exchange.sequence),
                                  .what = "the bytes could not be moved",
                                  .got = cause.what(),
                                  .want = "a working transport",
                                  .fix = "try --collectives direct, or --transport inproc"}));
  {
    const std::lock_guard lock(watch_.mutex());
    watch_.poison(exchange.channel->ranks[static_cast<size_t>(seat)], exchange.channel->ranks, error);
  }
  exchange.tell(Phase::kAborted);
  throw error;
}

void MatchTable::match(Channel& channel, Exchange& exchange) {
  for (const Seat& seat : exchange.seats) {
    exchange.matched_virtual_ns = std::max(exchange.matched_virtual_ns, seat.call.posted_virtual_ns);
    exchange.matched_bytes = std::max(exchange.matched_bytes, seat.call.posted_bytes);
    // The last member to take the lock did not necessarily post last.
    exchange.matched_wall_ns = std::max(exchange.matched_wall_ns, seat.posted_wall_ns);
  }
  // Every member posts in order, so this exchange is the oldest.
  channel.open.pop_front();
  ++channel.first_open;
  watch_.matched(exchange);
}

// REQUIRES: mutex held (called by Watch::poison).
void MatchTable::abort_open() {
  for (auto& [label, channel] : channels_) {
    for (const ExchangePtr& exchange : channel.open) exchange->tell(Phase::kAborted);
  }
}

void MatchTable::check_nothing_open() {
  const std::lock_guard lock(watch_.mutex());
  for (const auto& [label, channel] : channels_) {
    if (channel.open.empty()) continue;
    const Exchange& exchange = *channel.open.front();
    std::vector<int> absent;
    for (size_t s = 0; s < exchange.seats.size(); ++s)
      if (!exchange.seats[s].posted) absent.push_back(channel.info->ranks[s]);
    const Error error(
        ErrorKind::kCommunication,
        {.where = label + " call #" + std::to_string(exchange.sequence),
         .what = "a call was never completed",
         .got = side(exchange, exchange.first_seat, exchange.seats[static_cast<size_t>(exchange.first_seat)].call) +
                ", never made by rank " + join(std::span<const int>(absent), " "),
         .want = "every member makes it, and waits for it",
         .fix = "wait() for every async call, and let every member of the group make it"});
    watch_.poison(-1, channel.info->ranks, error);
    return;
  }
}

}  // namespace ranklab::cpu_sim
