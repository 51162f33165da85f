// Where the ranks of a world without a token meet: a unix socket named after rank 0's address and port, because for a
// unix socket, unlike TCP, the kernel reports whose process is at the other end (unix(7), SO_PEERCRED). The name is
// visible in the network namespace that the loopback address belongs to, and leaves no file. Another user may take the
// name first, which is detected and reported, but can neither join nor pose as rank 0. Thread rule: any thread.
#pragma once
#include <chrono>
#include <optional>
#include <string>

#include "backends/cpu_sim/transport/socket.h"

namespace ranklab::cpu_sim {

// Called on rank 0. Throws kEnvironment when the name is taken.
Socket listen_for_own_user(const std::string& address, int port);

// One attempt; returns nothing if nobody listens there. Throws kEnvironment if the listener is another user.
std::optional<Socket> connect_to_own_user(const std::string& address, int port, std::chrono::milliseconds limit);

// Whether the process at the other end belongs to this process's user; false for TCP, which cannot tell.
bool is_of_own_user(const Socket& socket);

}  // namespace ranklab::cpu_sim
