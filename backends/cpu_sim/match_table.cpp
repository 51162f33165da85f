#include "backends/cpu_sim/match_table.h"

#include <algorithm>
#include <functional>
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

Error mismatch(const Exchange& exchange, int seat, std::string got, const std::string& what, const std::string& fix) {
  const int rank = exchange.channel->ranks[static_cast<size_t>(seat)];
  return Error(ErrorKind::kCommunication,
               {.where = "rank " + std::to_string(rank) + ", " + exchange.channel->label + " call #" +
                         std::to_string(exchange.sequence),
                .what = "members disagree on the " + what,
                .got = std::move(got),
                .want = "the same " + what + " from every member, call by call",
                .fix = fix + "; an earlier call that one rank skipped or swapped shows up here too"});
}

Error mismatch_of_two(const Exchange& exchange, int seat, const Call& call, int other, const std::string& what) {
  const std::string theirs = side(exchange, other, exchange.seats[static_cast<size_t>(other)].call);
  const std::string ours = side(exchange, seat, call);
  return mismatch(exchange, seat, other > seat ? ours + " | " + theirs : theirs + " | " + ours, what,
                  "compare the two call sites");
}

// The members that have posted, grouped by agreement, the largest group first; each group in the order of seats.
std::vector<std::vector<int>> groups_by_agreement(const Exchange& exchange, bool same_call_site) {
  const auto call = [&](int seat) -> const Call& { return exchange.seats[static_cast<size_t>(seat)].call; };
  std::vector<std::vector<int>> kinds;
  for (int seat = 0; seat < static_cast<int>(exchange.seats.size()); ++seat) {
    if (!exchange.seats[static_cast<size_t>(seat)].posted) continue;
    const auto same = std::ranges::find_if(kinds, [&](const std::vector<int>& kind) {
      return !disagreement(call(kind.front()), kind.front(), call(seat), seat, same_call_site);
    });
    if (same == kinds.end())
      kinds.push_back({seat});
    else
      same->push_back(seat);
  }
  std::ranges::stable_sort(kinds, std::ranges::greater(), &std::vector<int>::size);
  return kinds;
}

// ", as of rank 0 2 3": the other members of a group that agrees.
std::string others_text(const Exchange& exchange, const std::vector<int>& kind) {
  constexpr size_t kNamed = 8;
  if (kind.size() == 1) return "";
  if (kind.size() > kNamed + 1) return ", as of " + std::to_string(kind.size() - 1) + " others";
  std::vector<int> ranks;
  for (size_t i = 1; i < kind.size(); ++i) ranks.push_back(exchange.channel->ranks[static_cast<size_t>(kind[i])]);
  return ", as of rank " + join(std::span<const int>(ranks), " ");
}

// The error compares a member of the smallest group with one of the largest, if one group is larger than all others;
// otherwise it compares members of two groups.
Error verdict(const Exchange& exchange, bool same_call_site) {
  const std::vector<std::vector<int>> kinds = groups_by_agreement(exchange, same_call_site);
  const auto call = [&](int seat) -> const Call& { return exchange.seats[static_cast<size_t>(seat)].call; };
  const int most = kinds[0].front();
  const bool is_odd = kinds[0].size() > kinds[1].size();
  const int odd = is_odd ? kinds.back().front() : kinds[1].front();
  const std::string what = disagreement(call(most), most, call(odd), odd, same_call_site).value_or("call");
  if (!is_odd) return mismatch_of_two(exchange, odd, call(odd), most, what);
  const std::string rank = rank_name(exchange.channel->ranks[static_cast<size_t>(odd)]);
  return mismatch(exchange, odd,
                  side(exchange, odd, call(odd)) + others_text(exchange, kinds.back()) + " | " +
                      side(exchange, most, call(most)) + others_text(exchange, kinds[0]),
                  what, "look at " + rank + " first, and compare the two call sites");
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

// The rows of an all_to_all concern each pair of members, so they are compared with every posted member; everything
// else is compared with one.
void MatchTable::check(const Channel& channel, const ExchangePtr& open, int seat, const Call& call) {
  Exchange& exchange = *open;
  const auto compare = [&](int other) {
    const Call& theirs = exchange.seats[static_cast<size_t>(other)].call;
    const std::optional<std::string> what =
        channel.info->is_message ? message_disagreement(seat == 0 ? call : theirs, seat == 0 ? theirs : call)
                                 : disagreement(theirs, other, call, seat, same_call_site_);
    if (!what) return;
    const bool of_a_pair = call.verb == Verb::kAllToAll && theirs.verb == Verb::kAllToAll;
    if (exchange.seats.size() > 2 && !of_a_pair) {
      exchange.disputed = true;
      return watch_.dispute(channel.info->ranks, [this, open] { return verdict(*open, same_call_site_); });
    }
    const Error error = mismatch_of_two(exchange, seat, call, other, *what);
    watch_.poison(-1, channel.info->ranks, error);
    throw error;
  };
  if (exchange.first_seat < 0 || exchange.disputed) return;
  compare(exchange.first_seat);
  if (call.verb != Verb::kAllToAll || exchange.disputed) return;
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
  check(channel, exchange, seat, call);
  exchange->seats[static_cast<size_t>(seat)] = {std::move(call), now_ns, true, std::move(ready)};
  if (exchange->first_seat < 0) exchange->first_seat = seat;
  ++exchange->posted;
  if (!exchange->complete()) {
    watch_.joined(*exchange);
    return exchange;
  }
  if (exchange->disputed) {
    watch_.settle_dispute();
    throw watch_.abort_error(channel.info->ranks[static_cast<size_t>(seat)]);
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
