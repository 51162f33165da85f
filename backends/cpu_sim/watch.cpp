#include "backends/cpu_sim/watch.h"

#include <algorithm>
#include <utility>

#include "core/base/text.h"
#include "core/base/thread_stack.h"
#include "core/comm/call_check.h"
#include "core/live/stepper.h"
#include "core/trace/tracer.h"

namespace ranklab::cpu_sim {
namespace {

constexpr int64_t kVotesWithinNs = 500'000'000;
// Between two checks, at most: what is longer was no time in which ranks could make calls.
constexpr int64_t kLongestRoundNs = 2'000'000'000;

// Global ranks of the members that have not posted.
std::vector<int> missing(const Exchange& exchange) {
  std::vector<int> out;
  for (size_t s = 0; s < exchange.seats.size(); ++s)
    if (!exchange.seats[s].posted) out.push_back(exchange.channel->ranks[s]);
  return out;
}

std::string call_name(const ChannelInfo& channel, int64_t sequence) {
  return channel.label + " call #" + std::to_string(sequence);
}

Error named(int rank, const Error& error) {
  ErrorText text = error.text();
  if (text.where.starts_with(rank_name(rank) + ",")) return error;
  text.where = rank_name(rank) + (text.where.empty() ? "" : ", " + text.where);
  return Error(error.kind(), std::move(text));
}

}  // namespace

Watch::Watch(int world_size, std::chrono::milliseconds hang_timeout, Stepper* stepper)
    : ranks_(static_cast<size_t>(world_size)),
      hang_timeout_ns_(std::chrono::nanoseconds(hang_timeout).count()),
      stepper_(stepper),
      last_check_ns_(wall_now_ns()) {
  for (RankState& rank : ranks_) rank.last_activity_ns = wall_now_ns();
}

void Watch::enter(int rank, int64_t now_ns) {
  state(rank).last_activity_ns = now_ns;
  if (poison_) throw abort_error(rank);
}

void Watch::matched(const Exchange& exchange) {
  for (const int rank : exchange.channel->ranks) {
    if (state(rank).blocked_on.get() != &exchange) continue;
    state(rank).blocked_on.reset();
    if (stepper_ != nullptr) stepper_->unblocked(rank);
  }
}

void Watch::joined(const Exchange& exchange) {
  if (stepper_ == nullptr) return;
  for (const int rank : exchange.channel->ranks)
    if (state(rank).blocked_on.get() == &exchange) report_blocked(rank);
}

void Watch::report_blocked(int rank) {
  if (stepper_ != nullptr) stepper_->blocked(rank, call_text(rank), missing(*state(rank).blocked_on));
}

void Watch::poison(int rank, std::vector<int> ranks, const Error& error) {
  if (poison_) return;
  if (dispute_)
    poison_.emplace(Poison{dispute_->verdict(), dispute_->ranks, -1});
  else
    poison_.emplace(Poison{error, std::move(ranks), rank});
  dispute_.reset();  // it holds tensors
  for (RankState& state : ranks_) state.blocked_on.reset();
  if (abort_open_) abort_open_();
  if (stepper_ != nullptr) stepper_->end_run();
}

void Watch::dispute(std::vector<int> ranks, std::function<Error()> verdict) {
  if (!dispute_) dispute_.emplace(Dispute{std::move(ranks), std::move(verdict), wall_now_ns()});
}

void Watch::settle_dispute() {
  if (!poison_) poison(-1, {}, dispute_->verdict());
}

void Watch::block(int rank, const ExchangePtr& exchange) {
  const std::lock_guard lock(mutex_);
  if (exchange->complete() || exchange->current() != Phase::kOpen) return;
  RankState& me = state(rank);
  me.blocked_on = exchange;
  me.blocked_since_ns = wall_now_ns();
  std::vector<int> path;
  std::vector<bool> seen(ranks_.size(), false);
  if (find_dead_end(rank, path, seen)) {
    report_deadlock(path);
    throw abort_error(rank);
  }
  report_blocked(rank);
}

// Depth-first search along "waits for". Leaves in `path` the ranks from `rank` to the one that closes the cycle or
// whose body has returned.
bool Watch::find_dead_end(int rank, std::vector<int>& path, std::vector<bool>& seen) {
  seen[static_cast<size_t>(rank)] = true;
  path.push_back(rank);
  for (const int next : missing(*state(rank).blocked_on)) {
    const bool cycle = std::find(path.begin(), path.end(), next) != path.end();
    if (cycle || state(next).returned) {
      path.push_back(next);
      return true;
    }
    if (state(next).blocked_on && !seen[static_cast<size_t>(next)] && find_dead_end(next, path, seen)) return true;
  }
  path.pop_back();
  return false;
}

// Description of the call that a blocked rank is in.
std::string Watch::call_text(int rank) {
  const Exchange& exchange = *state(rank).blocked_on;
  const auto seat = std::find(exchange.channel->ranks.begin(), exchange.channel->ranks.end(), rank);
  const Call& call = exchange.seats[static_cast<size_t>(seat - exchange.channel->ranks.begin())].call;
  return describe(call) + " (" + call_name(*exchange.channel, exchange.sequence) + ")";
}

std::string Watch::waiting_text(int rank) { return rank_name(rank) + " waits in " + call_text(rank); }

void Watch::report_deadlock(const std::vector<int>& path) {
  const int last = path.back();
  std::vector<std::string> steps;
  for (size_t i = 0; i + 1 < path.size(); ++i) steps.push_back(waiting_text(path[i]));
  const bool gone = state(last).returned;
  steps.push_back(rank_name(last) + (gone ? ", whose body has returned" : ""));
  std::vector<int> involved(path.begin(), path.end() - 1);
  ErrorText text{
      .where = rank_name(path.front()) + ", " + state(path.front()).blocked_on->channel->label,
      .what = gone ? "deadlock: a member will never make this call"
                   : "deadlock: each rank waits for the next one, in a circle",
      .got = join(std::span<const std::string>(steps), " -> for "),
      .want = gone ? "every member of a group makes every call" : "at least one rank of the circle goes first",
      .fix = gone ? "look for a branch, loop count or early return that differs between the ranks"
                  : "let one rank make its calls in the other order, or use the async forms"};
  poison(-1, std::move(involved), Error(ErrorKind::kCommunication, std::move(text)));
}

void Watch::finished_call(int rank, const Exchange& exchange, int seat, int64_t now_ns) {
  const Call& call = exchange.seats[static_cast<size_t>(seat)].call;
  const std::lock_guard lock(mutex_);
  RankState& me = state(rank);
  me.last_activity_ns = now_ns;
  me.last_finished = {exchange.channel, call.verb, exchange.sequence, call.site};
}

void Watch::runs_on(int rank, pthread_t thread) {
  const std::lock_guard lock(mutex_);
  state(rank).thread = thread;
}

void Watch::body_returned(int rank) {
  const std::lock_guard lock(mutex_);
  state(rank).returned = true;
  for (size_t other = 0; other < ranks_.size() && !poison_; ++other) {
    if (!ranks_[other].blocked_on) continue;
    const std::vector<int> gaps = missing(*ranks_[other].blocked_on);
    if (std::find(gaps.begin(), gaps.end(), rank) != gaps.end()) report_deadlock({static_cast<int>(other), rank});
  }
  if (stepper_ != nullptr) stepper_->rank_ended(rank);
}

void Watch::body_failed(int rank, const Error& error) {
  const std::lock_guard lock(mutex_);
  state(rank).returned = true;
  poison(rank, {}, named(rank, error));
}

void Watch::process_lost(int rank, ErrorKind kind, const std::string& what, const std::string& got,
                         const std::string& fix) {
  const std::lock_guard lock(mutex_);
  poison(rank, {},
         Error(kind, {.where = rank_name(rank),
                      .what = what,
                      .got = got + "; it last finished " + last_finished_text(rank),
                      .want = "every rank's process stays until the run ends",
                      .fix = fix}));
}

std::string Watch::last_finished_text(int rank) {
  const Finished& last = state(rank).last_finished;
  if (!last.channel) return "nothing";
  return std::string(name(last.verb)) + " at " + describe(last.site) + " (" + call_name(*last.channel, last.sequence) +
         ")";
}

// Where in the code a hung rank is, if its thread can be asked.
std::string Watch::stack_text(int rank) {
  const std::optional<pthread_t>& thread = state(rank).thread;
  const std::string where = thread ? where_thread_is(*thread) : "";
  return where.empty() ? "" : "; " + where;
}

bool Watch::report_hang(int waiter, int culprit, int64_t now_ns) {
  const RankState& held = state(culprit);
  int64_t since_ns = held.last_activity_ns;
  if (stepper_ != nullptr) {
    const auto free_since_ns = stepper_->free_since_ns(culprit);
    since_ns = free_since_ns ? std::max(since_ns, *free_since_ns) : now_ns;
  }
  if (held.blocked_on || held.returned || now_ns - since_ns <= hang_timeout_ns_) return false;
  ErrorText text{.where = rank_name(culprit),
                 .what = "the rank is hung: others wait for it and it makes no call",
                 .got = "silence for " + human_ns(static_cast<double>(now_ns - since_ns)) + "; it last finished " +
                        last_finished_text(culprit) + "; " + waiting_text(waiter) + stack_text(culprit),
                 .want = "a call within " + human_ns(static_cast<double>(hang_timeout_ns_)),
                 .fix = "look for an endless loop or a lock after that call, or raise the hang timeout"};
  poison(culprit, {}, Error(ErrorKind::kTimeout, std::move(text)));
  return true;
}

// A check that comes late was held up, and so were the ranks: the process was stopped (Ctrl-Z, a debugger), or it got
// no processor. That time is not held against them. A round still counts for something, so that a hang is found
// although every check comes late.
void Watch::forget_held_up(int64_t now_ns) {
  const int64_t most_ns = std::min<int64_t>(hang_timeout_ns_ / 4, kLongestRoundNs);
  const int64_t held_up_ns = now_ns - std::exchange(last_check_ns_, now_ns) - most_ns;
  if (held_up_ns <= 0) return;
  for (RankState& rank : ranks_) {
    rank.blocked_since_ns = std::min(now_ns, rank.blocked_since_ns + held_up_ns);
    rank.last_activity_ns = std::min(now_ns, rank.last_activity_ns + held_up_ns);
  }
}

void Watch::check_hang(int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  if (poison_) return;
  if (dispute_ && now_ns - dispute_->since_ns > kVotesWithinNs) return settle_dispute();
  if (hang_timeout_ns_ == 0) return;
  forget_held_up(now_ns);
  for (size_t waiter = 0; waiter < ranks_.size(); ++waiter) {
    const RankState& waiting = ranks_[waiter];
    if (!waiting.blocked_on || now_ns - waiting.blocked_since_ns <= hang_timeout_ns_) continue;
    for (const int culprit : missing(*waiting.blocked_on))
      if (report_hang(static_cast<int>(waiter), culprit, now_ns)) return;
  }
}

// Reads poison_, which is set once and before any exchange shows as aborted.
Error Watch::abort_error(int rank) {
  const Poison& p = *poison_;
  if (std::find(p.ranks.begin(), p.ranks.end(), rank) != p.ranks.end()) return p.error;
  const std::string culprit = p.rank >= 0 ? "rank " + std::to_string(p.rank) + " failed" : "the world failed";
  return Error(ErrorKind::kCommunication, {.where = rank_name(rank),
                                           .what = "aborted because " + culprit,
                                           .got = p.error.what(),
                                           .want = {},
                                           .fix = "fix that first; this rank only stopped waiting"});
}

std::optional<Error> Watch::first_error() {
  const std::lock_guard lock(mutex_);
  return poison_ ? std::optional<Error>(poison_->error) : std::nullopt;
}

}  // namespace ranklab::cpu_sim
