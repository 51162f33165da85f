// The few socket calls that the control connections need, with errors that tell what to do. Names are resolved only if
// the caller gave them, never for connecting peers. Thread rule: any thread; a Socket belongs to one owner.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <utility>

namespace ranklab::cpu_sim {

class Socket {
 public:
  Socket() = default;
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }
  int get() const { return descriptor_; }
  bool is_open() const { return descriptor_ >= 0; }
  void close();

 private:
  int descriptor_ = -1;
};

// A numeric address of `host`. Throws kInvalidArgument when the name cannot be resolved.
std::string resolve_host(const std::string& host);
bool is_loopback(const std::string& address);

// Unix sockets without a file, visible only in this network namespace; if no name is given, the kernel chooses one.
Socket listen_on_unix();
// Listens at an abstract name (beginning with a zero byte); nothing if the name is taken.
std::optional<Socket> listen_on_unix(const std::string& name);
std::string unix_name(const Socket& listener);
std::optional<Socket> connect_to_unix(const std::string& name, std::chrono::milliseconds limit);
// The user of the process at the other end of a unix socket; nothing for other sockets.
std::optional<int64_t> peer_user(const Socket& socket);

// Listens on `address` (numeric) and `port`, 0 for any. Throws kEnvironment naming the port.
Socket listen_on(const std::string& address, int port);
int port_of(const Socket& listener);
// Non-blocking. Nothing if nobody is waiting.
Socket accept_one(const Socket& listener);

// One attempt. Nothing if nobody listens there, or the time is up.
std::optional<Socket> connect_to(const std::string& address, int port, std::chrono::milliseconds limit);

// "10.0.0.2": the address of this end, and of the other one.
std::string local_address(const Socket& socket);
std::string peer_address(const Socket& socket);
// The local address that packets to `address` leave from.
std::string route_source(const std::string& address);

// An event that wakes a thread that polls it or waits for it in an epoll, whether the thread waits already or only
// later.
Socket wake_event();
void wake(const Socket& event);

// Non-blocking, at most `most` bytes. -1: no data now; 0: closed, or broken.
long receive_some(const Socket& socket, std::string& into, size_t most = 16 << 10);
// Sends as much as possible now; -1: the connection is broken.
long send_some(const Socket& socket, const std::string& bytes, size_t from);

}  // namespace ranklab::cpu_sim
