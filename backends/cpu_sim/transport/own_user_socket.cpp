#include "backends/cpu_sim/transport/own_user_socket.h"

#include <unistd.h>

#include "core/base/error.h"

namespace ranklab::cpu_sim {
namespace {

constexpr const char* kFix = "pass another --master-port (MASTER_PORT), or give all ranks one RANKLAB_RUN_TOKEN";

std::string name_of(const std::string& address, int port) {
  return std::string(1, '\0') + "ranklab-rendezvous-" + address + ":" + std::to_string(port);
}

}  // namespace

Socket listen_for_own_user(const std::string& address, int port) {
  std::optional<Socket> out = listen_on_unix(name_of(address, port));
  RANKLAB_CHECK(out, ErrorKind::kEnvironment, .where = "rendezvous, rank 0",
                .what = "another process listens where ranks without a token meet",
                .got = "a taken unix socket, @" + name_of(address, port).substr(1), .want = "a free one", .fix = kFix);
  return std::move(*out);
}

std::optional<Socket> connect_to_own_user(const std::string& address, int port, std::chrono::milliseconds limit) {
  std::optional<Socket> out = connect_to_unix(name_of(address, port), limit);
  RANKLAB_CHECK(
      !out || is_of_own_user(*out), ErrorKind::kEnvironment, .where = "rendezvous",
      .what = "a process of another user listens where rank 0 should",
      .got = "user " + std::to_string(peer_user(*out).value_or(-1)) + " at " + address + ":" + std::to_string(port),
      .want = "user " + std::to_string(::geteuid()) + ", as of this rank", .fix = kFix);
  return out;
}

bool is_of_own_user(const Socket& socket) { return peer_user(socket) == static_cast<int64_t>(::geteuid()); }

}  // namespace ranklab::cpu_sim
