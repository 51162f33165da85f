// Matches calls. A channel is a sequence of exchanges between fixed seats: the collectives of one group, or the
// messages of one ordered pair and tag. A member's k-th call on a channel takes its seat in exchange k; posting never
// waits. The call is compared with the first poster's, so two members that disagree are detected before either waits.
// In a collective of more than two members the others may still post, for up to half a second, so that the member whose
// call differs from the majority can be named. Cost: one mutex, one allocation per call. Thread rule: any thread.
#pragma once
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <string>

#include "backends/cpu_sim/exchange.h"
#include "backends/cpu_sim/mover.h"
#include "backends/cpu_sim/watch.h"

namespace ranklab::cpu_sim {

struct Channel {
  std::shared_ptr<const ChannelInfo> info;
  std::deque<ExchangePtr> open;  // exchange `first_open` and later
  int64_t first_open = 0;
  std::vector<int64_t> next;  // per seat: index of its next call
};

class MatchTable {
 public:
  MatchTable(Watch& watch, bool same_call_site);

  // The channel with that label, created on first use. REQUIRES: same info from every member.
  Channel& channel(const ChannelInfo& info);
  // Takes the seat. If it was the last one, the exchange is matched and passed to the mover. Throws a mismatch (on
  // every member of the channel) or the world's earlier error.
  ExchangePtr post(Channel& channel, int seat, Call call, Mover& mover);
  // After all bodies returned: throws if some member never made a call.
  void check_nothing_open();

 private:
  void check(const Channel& channel, const ExchangePtr& exchange, int seat, const Call& call);
  [[noreturn]] void fail(Exchange& exchange, int seat, const std::exception& cause);
  void match(Channel& channel, Exchange& exchange);
  void abort_open();

  Watch& watch_;
  bool same_call_site_;
  std::map<std::string, Channel> channels_;  // guarded by the watch's mutex
};

}  // namespace ranklab::cpu_sim
