#include "backends/cpu_sim/transport/data_connect.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <list>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "backends/cpu_sim/transport/frame.h"
#include "backends/cpu_sim/transport/handshake.h"
#include "backends/cpu_sim/transport/rounds.h"
#include "core/base/error.h"
#include "core/base/files/input_file.h"
#include "core/base/text.h"

namespace ranklab::cpu_sim {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kRound{20};

// The addresses a rank listens at.
struct DataAddress {
  // Boot and network namespace: two processes with the same one see each other's unix sockets. Empty: not known.
  std::string host;
  int64_t user = 0;
  std::string unix_name;  // empty: none
  std::string address;
  int64_t port = 0;
};

std::string this_network() {
  const std::string boot = read_file_if_any("/proc/sys/kernel/random/boot_id");
  std::array<char, 64> space{};
  const ssize_t length = ::readlink("/proc/self/ns/net", space.data(), space.size());
  if (boot.empty() || length <= 0) return {};
  return boot + std::string(space.data(), static_cast<size_t>(length));
}

std::string packed(const DataAddress& at) {
  return Packer().text(at.host).number(at.user).text(at.unix_name).text(at.address).number(at.port).bytes();
}

DataAddress unpacked(const std::string& bytes) {
  Unpacker in(bytes);
  DataAddress at;
  at.host = in.text();
  at.user = in.number();
  at.unix_name = in.text();
  at.address = in.text();
  at.port = in.number_between(0, 65535);
  return at;
}

bool by_unix(const DataAddress& mine, const DataAddress& theirs) {
  return !mine.unix_name.empty() && !theirs.unix_name.empty() && !mine.host.empty() && mine.host == theirs.host &&
         mine.user == theirs.user;
}

// Reads a frame byte by byte, since the bytes after it belong to the link.
std::optional<Frame> read_frame(const Socket& socket, Clock::time_point until) {
  FrameReader reader(kHelloCap);
  for (;;) {
    if (std::optional<Frame> frame = reader.next()) return frame;
    pollfd ready{socket.get(), POLLIN, 0};
    if (::poll(&ready, 1, static_cast<int>(time_left(until).count())) <= 0) return std::nullopt;
    std::string byte;
    if (receive_some(socket, byte, 1) == 0) return std::nullopt;
    reader.feed(byte);
  }
}

// The frames are far smaller than an empty socket buffer.
bool send_frame(const Socket& socket, FrameType type, const std::string& payload) {
  const std::string bytes = frame_bytes(type, payload);
  return send_some(socket, bytes, 0) == static_cast<long>(bytes.size());
}

// The listening end: accepts one connection from each higher rank, on its own thread, until all have connected.
class Acceptor {
 public:
  Acceptor(const ConnectOptions& options, std::string token, std::vector<const Socket*> listeners)
      : options_(options), token_(std::move(token)), listeners_(std::move(listeners)) {
    thread_ = std::thread([this] { loop(); });
  }
  ~Acceptor() { stop(); }

  bool complete() {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(accepted_.size()) == options_.world_size - 1 - options_.rank;
  }
  int first_missing() {
    const std::lock_guard lock(mutex_);
    int rank = options_.rank + 1;
    while (accepted_.contains(rank)) ++rank;
    return rank;
  }
  std::map<int, Socket> take() {
    stop();
    return std::move(accepted_);
  }

 private:
  struct Stranger {
    Socket socket;
    std::string challenge;
    FrameReader in{kHelloCap};
    Clock::time_point until = Clock::now() + kProveWithin;
    bool over = false;
  };

  void stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }

  void loop() {
    while (!stopping_ && !complete()) {
      std::vector<pollfd> waits;
      for (const Socket* listener : listeners_) waits.push_back({listener->get(), POLLIN, 0});
      for (const Stranger& stranger : strangers_) waits.push_back({stranger.socket.get(), POLLIN, 0});
      ::poll(waits.data(), waits.size(), static_cast<int>(kRound.count()));
      size_t i = listeners_.size();
      for (Stranger& stranger : strangers_) {
        if (waits[i++].revents != 0) read(stranger);
        stranger.over = stranger.over || Clock::now() > stranger.until;
      }
      strangers_.remove_if([](const Stranger& stranger) { return stranger.over; });
      for (const Socket* listener : listeners_) accept_all(*listener);
    }
  }

  void accept_all(const Socket& listener) {
    for (size_t i = 0; i < kStrangers; ++i) {
      Socket socket = accept_one(listener);
      if (!socket.is_open()) return;
      if (peer_user(socket).value_or(::geteuid()) != ::geteuid()) continue;
      if (strangers_.size() >= kStrangers) strangers_.pop_front();
      Stranger& stranger = strangers_.emplace_back();
      stranger.socket = std::move(socket);
      stranger.challenge = new_nonce();
      stranger.over = !send_frame(stranger.socket, FrameType::kChallenge, Packer().text(stranger.challenge).bytes());
    }
  }

  void read(Stranger& stranger) {
    std::string bytes;
    const long got = receive_some(stranger.socket, bytes);
    stranger.over = got == 0;
    try {
      stranger.in.feed(bytes);
      if (const std::optional<Frame> frame = stranger.in.next()) {
        let_in(stranger, *frame);
        stranger.over = true;
      }
    } catch (const Error&) {
      stranger.over = true;  // it sent no frame, or an invalid one
    }
  }

  void let_in(Stranger& stranger, const Frame& frame) {
    if (frame.type != FrameType::kHello) return;
    Unpacker in(frame.payload);
    const Hello hello = unpack_hello(in);
    if (!same_secret(hello.proof, member_proof(token_, stranger.challenge, hello))) return;
    const bool expected = hello.version == kProtocolVersion && hello.world_size == options_.world_size &&
                          hello.rank > options_.rank && hello.rank < options_.world_size;
    if (!expected || stranger.in.waiting_bytes() > 0) return;
    const std::string proof = coordinator_proof(token_, stranger.challenge, hello.nonce);
    if (!send_frame(stranger.socket, FrameType::kWelcome, Packer().text(proof).bytes())) return;
    const std::lock_guard lock(mutex_);
    // A rank that gave up an earlier attempt connects again; it uses the later connection.
    accepted_[hello.rank] = std::move(stranger.socket);
  }

  const ConnectOptions& options_;
  const std::string token_;
  const std::vector<const Socket*> listeners_;
  std::list<Stranger> strangers_;
  std::mutex mutex_;
  std::map<int, Socket> accepted_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// One attempt to reach a listening rank; nothing: try again. If the peer has accepted the connection, waits for it
// until the deadline, because a peer that has admitted this rank does not accept it a second time.
std::optional<Socket> try_to_reach(const ConnectOptions& options, const std::string& token, const DataAddress& mine,
                                   const DataAddress& theirs, Clock::time_point until) {
  const bool unix_socket = by_unix(mine, theirs);
  std::optional<Socket> socket = unix_socket
                                     ? connect_to_unix(theirs.unix_name, time_left(until))
                                     : connect_to(theirs.address, static_cast<int>(theirs.port), time_left(until));
  if (!socket || (unix_socket && peer_user(*socket) != mine.user)) return std::nullopt;
  try {
    const std::optional<Frame> challenge = read_frame(*socket, until);
    if (!challenge || challenge->type != FrameType::kChallenge) return std::nullopt;
    const std::string nonce = Unpacker(challenge->payload).text();
    Hello hello{.rank = options.rank,
                .world_size = options.world_size,
                .attempt = options.attempt,
                .run_id = options.run_id,
                .nonce = {},
                .proof = {}};
    if (!send_frame(*socket, FrameType::kHello, answer_challenge(token, nonce, hello))) return std::nullopt;
    const std::optional<Frame> welcome = read_frame(*socket, until);
    const bool proved = welcome && welcome->type == FrameType::kWelcome &&
                        same_secret(Unpacker(welcome->payload).text(), coordinator_proof(token, nonce, hello.nonce));
    return proved ? std::move(socket) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void check_time(const ConnectOptions& options, Clock::time_point deadline, int peer, const std::string& where) {
  RANKLAB_CHECK(!options.given_up(), ErrorKind::kCommunication, .where = "data connections",
                .what = "the world failed while they were made", .got = "no connection with " + rank_name(peer),
                .want = "every rank's process stays until the run ends", .fix = "see what the other ranks wrote");
  RANKLAB_CHECK(
      Clock::now() < deadline, ErrorKind::kTimeout, .where = "data connections, " + rank_name(options.rank),
      .what = rank_name(peer) + (where.empty() ? " does not connect" : " cannot be reached"),
      .got = (where.empty() ? "nobody who knows the run's secret" : "no answer that proves the secret at " + where) +
             std::string(" for ") + human_ns(static_cast<double>(options.timeout.count()) * 1e6),
      .want = "TCP connections on any port between the hosts",
      .fix = "open the firewall between them, or set MASTER_ADDR to an address all hosts can reach");
}

Socket reach(const ConnectOptions& options, const std::string& token, const DataAddress& mine,
             const DataAddress& theirs, int peer, Clock::time_point deadline) {
  milliseconds pause(5);
  for (;;) {
    if (std::optional<Socket> socket = try_to_reach(options, token, mine, theirs, deadline)) return std::move(*socket);
    const std::string where =
        by_unix(mine, theirs) ? "its unix socket" : theirs.address + ":" + std::to_string(theirs.port);
    check_time(options, deadline, peer, where);
    std::this_thread::sleep_for(std::min(pause, time_left(deadline)));
    pause = std::min(pause * 2, milliseconds(200));
  }
}

}  // namespace

PeerSockets connect_peers(const ConnectOptions& options, const PeerStore& store) {
  const Clock::time_point deadline = Clock::now() + options.timeout;
  const auto key = [](int rank) { return "data/" + std::to_string(rank); };
  if (options.rank == 0) store.set("data/secret", new_nonce());
  const std::string secret = store.get("data/secret");
  const auto token_of = [&](int listener) {
    return data_token({options.token, secret, options.run_id, options.attempt, listener});
  };

  const Socket unix_listener = options.unix_sockets ? listen_on_unix() : Socket();
  const Socket tcp_listener = listen_on(options.address, 0);
  DataAddress mine{this_network(), static_cast<int64_t>(::geteuid()), {}, options.address, port_of(tcp_listener)};
  std::vector<const Socket*> listeners;
  if (unix_listener.is_open()) {
    mine.unix_name = unix_name(unix_listener);
    listeners.push_back(&unix_listener);
  }
  listeners.push_back(&tcp_listener);
  store.set(key(options.rank), packed(mine));

  Acceptor acceptor(options, token_of(options.rank), listeners);
  PeerSockets out;
  for (int peer = 0; peer < options.rank; ++peer) {
    const DataAddress theirs = unpacked(store.get(key(peer)));
    out.all_unix = out.all_unix && by_unix(mine, theirs);
    out.by_rank[peer] = reach(options, token_of(peer), mine, theirs, peer, deadline);
  }
  while (!acceptor.complete()) {
    check_time(options, deadline, acceptor.first_missing(), "");
    std::this_thread::sleep_for(milliseconds(1));
  }
  for (auto& [peer, socket] : acceptor.take()) {
    out.all_unix = out.all_unix && peer_user(socket).has_value();
    out.by_rank[peer] = std::move(socket);
  }
  return out;
}

}  // namespace ranklab::cpu_sim
