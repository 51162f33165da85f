// Establishes the data connections between the processes of a world. Each process publishes where it listens (a unix
// socket, and TCP on its reachable address) in the coordinator's store; of two ranks the higher connects to the lower,
// over the unix socket if both belong to one user on one host. A connection is accepted once both ends have proved the
// run's secret to each other (handshake.h); any other peer is rejected and delays nobody, as at the coordinator. Thread
// rule: connect_peers belongs to one thread.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <string>

#include "backends/cpu_sim/transport/socket.h"

namespace ranklab::cpu_sim {

struct PeerStore {
  std::function<void(const std::string& key, const std::string& value)> set;
  std::function<std::string(const std::string& key)> get;  // waits for the key
};

struct ConnectOptions {
  int rank = 0;
  int world_size = 1;
  std::string token = {};
  std::string run_id = {};
  int64_t attempt = 0;
  std::string address = {};  // of this host, as other hosts reach it
  bool unix_sockets = true;  // where both ends are on one host
  std::chrono::milliseconds timeout{20'000};
  std::function<bool()> given_up = [] { return false; };  // polled now and then: whether the world has failed
};

struct PeerSockets {
  std::map<int, Socket> by_rank;  // of every other rank
  bool all_unix = true;
};

// Throws kTimeout naming a rank that could not be connected, whatever the store throws, or kCommunication if
// given_up().
PeerSockets connect_peers(const ConnectOptions& options, const PeerStore& store);

}  // namespace ranklab::cpu_sim
