#include "backends/cpu_sim/processes/switchboard.h"

#include <algorithm>
#include <numeric>

#include "core/trace/tracer.h"

namespace ranklab::cpu_sim {
namespace {

[[noreturn]] void refuse(const std::string& got, const std::string& want) {
  throw Error(ErrorKind::kCommunication, {.where = "coordinator",
                                          .what = "a rank sent an invalid message",
                                          .got = got,
                                          .want = want,
                                          .fix = "use the same version of ranklab on every rank"});
}

// The checks that Communicator's verbs perform in a thread world.
void check_call(const Call& call, size_t members) {
  const bool splits_in = call.verb == Verb::kReduceScatter || call.verb == Verb::kAllToAll;
  const bool splits_out = call.verb == Verb::kAllGather || call.verb == Verb::kAllToAll;
  if (call.input_splits.size() != (splits_in ? members : 0) || call.output_splits.size() != (splits_out ? members : 0))
    refuse("a call with other row counts than members", std::to_string(members) + " counts");
  const bool has_tensor = call.input.defined() || call.output.defined();
  if (has_tensor == (call.verb == Verb::kBarrier)) refuse("a call without its tensor", "dtype and shape");
}

int seat_of(const ChannelInfo& info, int rank) {
  const auto found = std::find(info.ranks.begin(), info.ranks.end(), rank);
  if (found == info.ranks.end()) refuse("a channel without the rank that opens it", "its own channel");
  return static_cast<int>(found - info.ranks.begin());
}

}  // namespace

// The coordinator moves no bytes: it notifies the members that their call is matched.
class Switchboard::Announcer final : public Mover {
 public:
  explicit Announcer(Switchboard& board) : board_(board) {}
  void matched(Exchange& exchange) override {
    board_.announce(exchange);
    exchange.set(Phase::kMatched);
  }
  void complete(Exchange&, int) override {}
  bool poll(Exchange&, int) override { return true; }
  int64_t wire_bytes(const Exchange&, int) const override { return 0; }
  bool needs_thread(const Call&) const override { return false; }

 private:
  Switchboard& board_;
};

Switchboard::Switchboard(int world_size, std::chrono::milliseconds hang_timeout, bool same_call_site, Send send,
                         SourceFiles& files, int64_t& serial)
    : send_(std::move(send)),
      files_(files),
      serial_(serial),
      watch_(world_size, hang_timeout),
      table_(watch_, same_call_site),
      members_(static_cast<size_t>(world_size)) {}

void Switchboard::handle(int rank, const Frame& frame) {
  try {
    Unpacker in(frame.payload);
    Member& me = member(rank);
    switch (frame.type) {
      case FrameType::kChannel:
        return open_channel(rank, in);
      case FrameType::kPost:
        return post(rank, in);
      case FrameType::kWait:
      case FrameType::kFinished: {
        const int64_t number = in.number();
        const auto found = me.posted.find({number, in.number()});
        if (found == me.posted.end()) return;
        if (frame.type == FrameType::kWait) return watch_.block(rank, found->second);
        watch_.finished_call(rank, *found->second, seat_of(*found->second->channel, rank), wall_now_ns());
        me.posted.erase(found);
        return;
      }
      case FrameType::kFailed:
        watch_.body_failed(rank, unpack_error(in));
        break;
      case FrameType::kReturned:
        watch_.body_returned(rank);
        break;
      default:
        refuse("frame " + std::to_string(static_cast<int>(frame.type)), "a call");
    }
    if (!me.returned) ++returned_;
    me.returned = true;
  } catch (const std::exception& error) {
    // A mismatch or a deadlock has failed the run already, and then this does nothing.
    lost(rank, ErrorKind::kCommunication, "the rank's process is not understood", error.what(),
         "use the same version of ranklab on every rank");
  }
}

void Switchboard::fail(const Error& error) {
  std::vector<int> all(members_.size());
  std::iota(all.begin(), all.end(), 0);
  const std::lock_guard lock(watch_.mutex());
  watch_.poison(-1, std::move(all), error);
}

void Switchboard::open_channel(int rank, Unpacker& in) {
  const int64_t number = in.number();
  ChannelInfo info;
  info.label = in.text();
  for (const int64_t each : in.numbers()) {
    if (each < 0 || each >= static_cast<int64_t>(members_.size()))
      refuse("a channel of other ranks", "ranks of this world");
    info.ranks.push_back(static_cast<int>(each));
  }
  info.is_message = in.flag();
  seat_of(info, rank);
  Member& me = member(rank);
  if (number != static_cast<int64_t>(me.channels.size()))
    refuse("channel " + std::to_string(number), "the next number");
  Channel& channel = table_.channel(info);
  if (channel.info->ranks != info.ranks) refuse("two groups of one name", "one group");
  me.channels.push_back(&channel);
  me.numbers[channel.info.get()] = number;
}

void Switchboard::post(int rank, Unpacker& in) {
  Member& me = member(rank);
  const int number = in.number_between(0, static_cast<int64_t>(me.channels.size()) - 1);
  const int64_t sequence = in.number();
  Call call = unpack_call(in, files_);
  const bool blocking = call.blocking;
  Channel& channel = *me.channels[static_cast<size_t>(number)];
  if (!channel.info->is_message) check_call(call, channel.info->ranks.size());
  const int seat = seat_of(*channel.info, rank);
  if (sequence != channel.next[static_cast<size_t>(seat)]) refuse("call " + std::to_string(sequence), "the next call");
  Announcer announcer(*this);
  const ExchangePtr exchange = table_.post(channel, seat, std::move(call), announcer);
  me.posted[{number, sequence}] = exchange;
  if (blocking) watch_.block(rank, exchange);
}

void Switchboard::announce(const Exchange& exchange) {
  const int64_t serial = serial_++;
  for (const int rank : exchange.channel->ranks) {
    const int64_t number = member(rank).numbers[exchange.channel.get()];
    send_(rank, FrameType::kMatched,
          Packer()
              .number(number)
              .number(exchange.sequence)
              .number(exchange.matched_virtual_ns)
              .number(exchange.matched_bytes)
              .number(serial)
              .bytes());
  }
}

}  // namespace ranklab::cpu_sim
