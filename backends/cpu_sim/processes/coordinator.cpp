#include "backends/cpu_sim/processes/coordinator.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>

#include "backends/cpu_sim/transport/own_user_socket.h"
#include "backends/cpu_sim/transport/rounds.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/trace/tracer.h"

namespace ranklab::cpu_sim {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kGoodbyeWithin{1'000};
constexpr milliseconds kGoodbyeAfterFailure{150};

milliseconds age(std::chrono::steady_clock::time_point now, std::chrono::steady_clock::time_point then) {
  return std::chrono::duration_cast<milliseconds>(now - then);
}

}  // namespace

Coordinator::Coordinator(std::vector<Socket> listeners, CoordinatorOptions options)
    : options_(std::move(options)),
      listeners_(std::move(listeners)),
      wake_(wake_event()),
      members_(static_cast<size_t>(options_.world_size), nullptr) {
  new_run();
  thread_ = std::thread([this] { loop(); });
}

Coordinator::~Coordinator() {
  stopping_ = true;
  wake(wake_);
  thread_.join();
}

void Coordinator::new_run() {
  run_ = std::make_unique<Switchboard>(
      options_.world_size, options_.hang_timeout, options_.same_call_site,
      [this](int rank, FrameType type, const std::string& payload) {
        if (Connection* connection = of_rank(rank); connection != nullptr) send(*connection, type, payload);
      },
      files_, serial_);
}

void Coordinator::loop() {
  pthread_setname_np(pthread_self(), "coordinator");
  while (!stopping_) {
    poll_once();
    check_times();
    spread_news();
  }
  const Clock::time_point end = Clock::now() + (told_ ? kGoodbyeAfterFailure : kGoodbyeWithin);
  for (Connection& connection : connections_)
    if (connection.rank >= 0) send(connection, FrameType::kBye);
  const auto here = [&] { return std::any_of(members_.begin(), members_.end(), [](auto* m) { return m != nullptr; }); };
  while (here() && Clock::now() < end) poll_once();
}

void Coordinator::poll_once() {
  std::vector<pollfd> waits = {{wake_.get(), POLLIN, 0}};
  for (const Socket& listener : listeners_) waits.push_back({listener.get(), POLLIN, 0});
  const size_t first = waits.size();
  std::vector<Connection*> order;
  for (Connection& connection : connections_) {
    const auto events = static_cast<short>(POLLIN | (connection.out.empty() ? 0 : POLLOUT));
    waits.push_back({connection.socket.get(), events, 0});
    order.push_back(&connection);
  }
  ::poll(waits.data(), waits.size(), static_cast<int>(kTick.count()));
  for (size_t i = 0; i < order.size(); ++i) {
    if ((waits[first + i].revents & POLLOUT) != 0) flush(*order[i]);
    if ((waits[first + i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) read(*order[i]);
  }
  for (size_t i = 0; i < listeners_.size(); ++i)
    if ((waits[1 + i].revents & POLLIN) != 0) accept_all(listeners_[i]);
  for (auto it = connections_.begin(); it != connections_.end();) {
    const bool over = it->dead || (it->closing && it->out.empty());
    if (over) lose(*it);
    it = over ? connections_.erase(it) : std::next(it);
  }
}

void Coordinator::accept_all(const Socket& listener) {
  for (size_t i = 0; i < kStrangers; ++i) {
    Socket accepted = accept_one(listener);
    if (!accepted.is_open()) return;
    const auto strangers = std::count_if(connections_.begin(), connections_.end(),
                                         [](const Connection& c) { return c.rank < 0 && !c.dead; });
    if (strangers >= static_cast<int64_t>(kStrangers)) {
      std::find_if(connections_.begin(), connections_.end(), [](const Connection& c) {
        return c.rank < 0 && !c.dead;
      })->dead = true;
    }
    Connection& connection = connections_.emplace_back(std::move(accepted));
    connection.challenge = new_nonce();
    send(connection, FrameType::kChallenge, Packer().text(connection.challenge).bytes());
  }
}

void Coordinator::read(Connection& connection) {
  if (connection.dead) return;
  try {
    std::string bytes;
    // Bounded, so that one busy peer does not starve the others.
    for (int i = 0; i < 16; ++i) {
      const long got = receive_some(connection.socket, bytes);
      if (got < 0) break;
      if (got == 0) connection.dead = true;
      if (got == 0) break;
    }
    connection.in.feed(bytes);
    connection.last_heard = Clock::now();
    while (const std::optional<Frame> frame = connection.in.next()) {
      handle(connection, *frame);
      if (connection.closing) return;
    }
  } catch (const std::exception& error) {
    if (connection.rank >= 0) {
      run_->lost(connection.rank, ErrorKind::kCommunication, "the rank's process is not understood", error.what(),
                 "use the same version of ranklab on every rank");
    }
    connection.dead = true;
  }
}

void Coordinator::handle(Connection& connection, const Frame& frame) {
  if (connection.rank < 0) return handle_hello(connection, frame);
  switch (frame.type) {
    case FrameType::kAlive:
      return;
    case FrameType::kSet:
    case FrameType::kGet:
      return store(connection, frame);
    case FrameType::kBye:
      connection.said_bye = true;
      return;
    case FrameType::kLeft: {
      Unpacker in(frame.payload);
      const bool last = in.flag();
      return left_.add(connection.rank, in.text(), last);
    }
    default:
      run_->handle(connection.rank, frame);
  }
  if (!run_->all_returned() || run_->first_error()) return;
  run_->check_nothing_open();
  if (run_->first_error()) return;
  new_run();
  for (Connection* member : members_)
    if (member != nullptr) send(*member, FrameType::kEnded);
}

void Coordinator::handle_hello(Connection& connection, const Frame& frame) {
  Unpacker in(frame.payload);
  if (frame.type != FrameType::kHello) {
    connection.dead = true;
    return;
  }
  const Hello hello = unpack_hello(in);
  std::optional<Refusal> refusal = check_identity(connection, hello);
  if (!refusal) refusal = check_membership(hello);
  if (refusal) return refuse(connection, std::move(*refusal));
  welcome(connection, hello);
}

std::optional<Coordinator::Refusal> Coordinator::check_identity(const Connection& connection,
                                                                const Hello& hello) const {
  if (hello.version != kProtocolVersion) {
    return Refusal{.text = {.where = "rendezvous, " + rank_name(hello.rank),
                            .what = "the ranks run different versions of ranklab",
                            .got = "protocol " + std::to_string(hello.version),
                            .want = "protocol " + std::to_string(kProtocolVersion) + ", as on rank 0",
                            .fix = "install one version on every host"}};
  }
  if (!same_secret(hello.proof, member_proof(options_.token, connection.challenge, hello))) {
    return Refusal{.text = {.where = "rendezvous",
                            .what = "the run's token is not the one of rank 0",
                            .want = "one token for all ranks of a run",
                            .fix = "pass the same RANKLAB_RUN_TOKEN (or --rdzv-token-file) on every host"}};
  }
  if (!options_.token.empty() || is_of_own_user(connection.socket)) return std::nullopt;
  const std::optional<int64_t> user = peer_user(connection.socket);
  // A rank that connected before the unix socket existed tries again.
  return Refusal{
      .text = {.where = "rendezvous, " + rank_name(hello.rank),
               .what = "without a token all ranks are processes of one user",
               .got = user ? "user " + std::to_string(*user) : "a TCP connection, which does not reveal the user",
               .want = "user " + std::to_string(::geteuid()) + ", as of rank 0, over its unix socket",
               .fix = "export RANKLAB_RUN_TOKEN=$(openssl rand -hex 32), the same for every rank"},
      .try_again = !user};
}

std::optional<Coordinator::Refusal> Coordinator::check_membership(const Hello& hello) const {
  const std::string rank = rank_name(hello.rank);
  if (hello.run_id != options_.run_id || hello.attempt != options_.attempt) {
    return Refusal{.text = {.where = "rendezvous, " + rank,
                            .what = "another run uses this address",
                            .got = quote(hello.run_id) + " restart " + std::to_string(hello.attempt),
                            .want = quote(options_.run_id) + " restart " + std::to_string(options_.attempt),
                            .fix = "use one --rdzv-id per run, and another --master-port"},
                   .try_again = hello.run_id == options_.run_id && hello.attempt > options_.attempt};
  }
  if (hello.world_size != options_.world_size || hello.rank >= options_.world_size) {
    return Refusal{.text = {.where = "rendezvous, " + rank,
                            .what = "the world sizes differ",
                            .got = std::to_string(hello.world_size) + " on this rank",
                            .want = std::to_string(options_.world_size) + ", as on rank 0",
                            .fix = "start every rank with the same WORLD_SIZE"}};
  }
  const Connection* there = members_[static_cast<size_t>(hello.rank)];
  if (there == nullptr) return std::nullopt;
  return Refusal{.text = {.where = "rendezvous",
                          .what = rank + " is there already",
                          .got = "a second process (pid " + std::to_string(hello.pid) + ") of " + rank,
                          .want = "one process per rank; the first is " + who(*there),
                          .fix = "check RANK, or --node-rank, on each host"}};
}

void Coordinator::welcome(Connection& connection, const Hello& hello) {
  connection.rank = hello.rank;
  connection.pid = hello.pid;
  connection.address = peer_user(connection.socket) ? "this host" : peer_address(connection.socket);
  connection.in.set_cap(kFrameCap);
  members_[static_cast<size_t>(hello.rank)] = &connection;
  if (hello.rank != 0) left_.expect(hello.rank);
  send(connection, FrameType::kWelcome,
       Packer().text(coordinator_proof(options_.token, connection.challenge, hello.nonce)).bytes());
  if (told_) tell(connection, *run_->first_error());
  if (++joined_ < options_.world_size) return;
  started_ = true;
  for (Connection* member : members_)
    if (member != nullptr) send(*member, FrameType::kStart);
}

void Coordinator::refuse(Connection& connection, Refusal refusal) {
  Packer packer;
  pack_error(packer, Error(ErrorKind::kInvalidArgument, std::move(refusal.text)));
  packer.number(refusal.try_again ? 1 : 0);
  send(connection, FrameType::kRefused, packer.bytes());
  connection.closing = true;
}

void Coordinator::store(Connection& connection, const Frame& frame) {
  Unpacker in(frame.payload);
  const std::string key = in.text();
  const auto answer = [&](Connection& to) {
    send(to, FrameType::kValue, Packer().text(key).text(values_[key]).bytes());
  };
  if (frame.type == FrameType::kSet) {
    values_[key] = in.text();
    for (const int rank : asked_[key])
      if (Connection* member = of_rank(rank); member != nullptr) answer(*member);
    asked_.erase(key);
  } else if (values_.contains(key)) {
    answer(connection);
  } else {
    asked_[key].insert(connection.rank);
  }
}

// Call before the connection is dropped.
void Coordinator::lose(Connection& connection) {
  if (connection.rank < 0) return;
  members_[static_cast<size_t>(connection.rank)] = nullptr;
  left_.forget(connection.rank);
  if (connection.said_bye) return;
  run_->lost(connection.rank, ErrorKind::kCommunication, "the rank's process is gone",
             "its connection ended (" + who(connection) + ")",
             "see what that process wrote last; the kernel's out-of-memory killer says so in dmesg");
}

std::string Coordinator::who(const Connection& connection) const {
  return "pid " + std::to_string(connection.pid) + " on " + connection.address;
}

void Coordinator::check_times() {
  const Clock::time_point now = Clock::now();
  if (age(now, last_round_) > kLongRound) {
    for (Connection& connection : connections_) connection.last_heard = now;
  }
  last_round_ = now;
  for (Connection& connection : connections_) {
    if (connection.rank < 0 && age(now, connection.since) > kProveWithin) connection.dead = true;
  }
  if (age(now, last_beat_) >= kHeartbeat) {
    last_beat_ = now;
    for (Connection* member : members_)
      if (member != nullptr) send(*member, FrameType::kAlive);
  }
  if (!started_) return check_join_deadline(now);
  run_->check_hang(wall_now_ns());
  if (options_.silence_limit.count() == 0) return;
  for (const Connection* member : members_) {
    if (member == nullptr || age(now, member->last_heard) <= options_.silence_limit) continue;
    run_->lost(member->rank, ErrorKind::kTimeout, "the rank's process does not answer",
               strprintf("silence for %.1f s (", static_cast<double>(age(now, member->last_heard).count()) * 1e-3) +
                   who(*member) + ")",
               "look whether it is stopped (SIGSTOP, a debugger), or its host unreachable");
    left_.forget(member->rank);
  }
}

// Reports missing ranks while they are waited for, at increasing intervals.
void Coordinator::report_missing_ranks(Clock::time_point now) {
  if (age(now, begin_) < next_word_) return;
  std::vector<int> missing;
  for (int rank = 0; rank < options_.world_size; ++rank)
    if (of_rank(rank) == nullptr) missing.push_back(rank);
  log_warning(
      strprintf("[rendezvous] waits for %s %s: %d of %d ranks are here after %s, the limit is %s "
                "(--rendezvous-timeout); see whether they were started, wait for a debugger, or are stopped",
                missing.size() == 1 ? "rank" : "ranks", join(std::span<const int>(missing), " ").c_str(), joined_,
                options_.world_size, human_ns(static_cast<double>(next_word_.count()) * 1e6).c_str(),
                human_ns(static_cast<double>(options_.join_timeout.count()) * 1e6).c_str()));
  next_word_ *= 2;
}

void Coordinator::check_join_deadline(Clock::time_point now) {
  if (run_->first_error()) return;
  if (age(now, begin_) < options_.join_timeout) return report_missing_ranks(now);
  std::vector<std::string> here;
  std::vector<int> missing;
  for (int rank = 0; rank < options_.world_size; ++rank) {
    const Connection* member = of_rank(rank);
    if (member == nullptr) missing.push_back(rank);
    if (member != nullptr) here.push_back(std::to_string(rank) + " (" + who(*member) + ")");
  }
  const std::string names = join(std::span<const int>(missing), " ");
  run_->fail(Error(ErrorKind::kTimeout,
                   {.where = "rendezvous",
                    .what = (missing.size() == 1 ? "rank " : "ranks ") + names + " did not arrive in time",
                    .got = "after " + human_ns(static_cast<double>(options_.join_timeout.count()) * 1e6) +
                           " only rank " + join(std::span<const std::string>(here), ", "),
                    .want = "all " + std::to_string(options_.world_size) + " ranks",
                    .fix = "see what the missing processes wrote, and that their hosts reach this one; "
                           "--rendezvous-timeout gives them longer"}));
}

// Notifies everybody, once, that the run failed.
void Coordinator::spread_news() {
  if (told_) return;
  const std::optional<Error> error = run_->first_error();
  if (!error) return;
  told_ = true;
  for (Connection* member : members_)
    if (member != nullptr) tell(*member, *error);
}

void Coordinator::tell(Connection& member, const Error& error) {
  Packer packer;
  pack_error(packer, error);
  pack_error(packer, run_->abort_error(member.rank));
  send(member, FrameType::kPoison, packer.bytes());
}

void Coordinator::send(Connection& connection, FrameType type, const std::string& payload) {
  connection.out += frame_bytes(type, payload);
  flush(connection);
}

void Coordinator::flush(Connection& connection) {
  size_t done = 0;
  while (done < connection.out.size()) {
    const long sent = send_some(connection.socket, connection.out, done);
    if (sent < 0) connection.dead = true;
    if (sent <= 0) break;
    done += static_cast<size_t>(sent);
  }
  connection.out.erase(0, done);
  // A peer that does not read is dropped.
  if (connection.out.size() > 4 * kFrameCap) connection.dead = true;
}

}  // namespace ranklab::cpu_sim
