// The rendezvous of a world whose ranks are processes: one thread in rank 0's process, one connection per rank. It
// admits peers that prove the run's token (handshake.h), or without a token processes of this user (own_user_socket.h),
// waits until every rank has joined, provides a small key-value store (for Gloo's addresses), and runs the switchboard.
// A closed connection means a dead process; one that is silent for too long means a stopped process or an unreachable
// host; either fails the run at once, naming the rank. Strangers cannot block it: they have a short time to prove
// themselves, a small buffer each, and a limited number of slots, of which the oldest is reused. Cost: no thread per
// connection. Thread rule: construct and destroy on one thread.
#pragma once
#include <atomic>
#include <chrono>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backends/cpu_sim/processes/left_behind.h"
#include "backends/cpu_sim/processes/switchboard.h"
#include "backends/cpu_sim/transport/frame.h"
#include "backends/cpu_sim/transport/handshake.h"
#include "backends/cpu_sim/transport/socket.h"

namespace ranklab::cpu_sim {

struct CoordinatorOptions {
  int world_size = 1;
  std::string token;
  std::string run_id;
  int64_t attempt = 0;
  std::chrono::milliseconds join_timeout{60'000};
  std::chrono::milliseconds hang_timeout{60'000};
  std::chrono::milliseconds silence_limit{2'000};  // 0: never
  bool same_call_site = false;
};

class Coordinator {
 public:
  Coordinator(std::vector<Socket> listeners, CoordinatorOptions options);
  // Says goodbye to the members and waits briefly until they have gone, so that all of them receive the last messages.
  ~Coordinator();

  // What the ranks have left behind (World::left_behind()): waits until each member except rank 0 has sent it, or is
  // gone or silent. Any thread.
  std::vector<std::string> left_behind(std::chrono::milliseconds limit) { return left_.take(limit); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    explicit Connection(Socket accepted) : socket(std::move(accepted)) {}
    Socket socket;
    FrameReader in{kHelloCap};
    std::string out;
    Clock::time_point since = Clock::now();
    Clock::time_point last_heard = Clock::now();
    std::string challenge;
    std::string address;
    int rank = -1;  // -1: a stranger
    int64_t pid = 0;
    bool closing = false;  // to be closed once `out` is sent
    bool said_bye = false;
    bool dead = false;
  };

  struct Refusal {
    ErrorText text;
    bool try_again = false;
  };

  void loop();
  void poll_once();
  void accept_all(const Socket& listener);
  void read(Connection& connection);
  void handle(Connection& connection, const Frame& frame);
  void handle_hello(Connection& connection, const Frame& frame);
  std::optional<Refusal> check_identity(const Connection& connection, const Hello& hello) const;
  std::optional<Refusal> check_membership(const Hello& hello) const;
  void welcome(Connection& connection, const Hello& hello);
  void refuse(Connection& connection, Refusal refusal);
  void store(Connection& connection, const Frame& frame);
  void lose(Connection& connection);
  void check_times();
  void check_join_deadline(Clock::time_point now);
  void report_missing_ranks(Clock::time_point now);
  void spread_news();
  void tell(Connection& member, const Error& error);
  void send(Connection& connection, FrameType type, const std::string& payload = {});
  void flush(Connection& connection);
  void new_run();
  Connection* of_rank(int rank) { return members_[static_cast<size_t>(rank)]; }
  std::string who(const Connection& connection) const;

  CoordinatorOptions options_;
  std::vector<Socket> listeners_;
  Socket wake_;
  std::list<Connection> connections_;
  std::vector<Connection*> members_;  // by rank; null: not there, or gone
  int joined_ = 0;
  bool started_ = false;
  bool told_ = false;  // the run's failure has been sent to all
  std::map<std::string, std::string> values_;
  std::map<std::string, std::set<int>> asked_;  // ranks that wait for a key
  SourceFiles files_;
  int64_t serial_ = 0;
  std::unique_ptr<Switchboard> run_;
  Clock::time_point begin_ = Clock::now();
  std::chrono::milliseconds next_word_{3'000};  // time after begin_ at which missing ranks are reported next
  Clock::time_point last_round_ = Clock::now();
  Clock::time_point last_beat_ = Clock::now();
  std::atomic<bool> stopping_{false};
  LeftBehind left_;
  std::thread thread_;
};

}  // namespace ranklab::cpu_sim
