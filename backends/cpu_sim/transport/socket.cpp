#include "backends/cpu_sim/transport/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab::cpu_sim {
namespace {

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

Address numeric(const std::string& address, int port) {
  Address out;
  if (address.find(':') == std::string::npos) {
    auto* in = reinterpret_cast<sockaddr_in*>(&out.storage);
    in->sin_family = AF_INET;
    in->sin_port = htons(static_cast<uint16_t>(port));
    out.length = sizeof *in;
    inet_pton(AF_INET, address.c_str(), &in->sin_addr);
  } else {
    auto* in = reinterpret_cast<sockaddr_in6*>(&out.storage);
    in->sin6_family = AF_INET6;
    in->sin6_port = htons(static_cast<uint16_t>(port));
    out.length = sizeof *in;
    inet_pton(AF_INET6, address.c_str(), &in->sin6_addr);
  }
  return out;
}

// REQUIRES: no longer than sun_path.
Address unix_address(const std::string& name) {
  Address out;
  auto* in = reinterpret_cast<sockaddr_un*>(&out.storage);
  in->sun_family = AF_UNIX;
  std::memcpy(in->sun_path, name.data(), name.size());
  out.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  return out;
}

std::string text_of(const Address& address) {
  std::array<char, NI_MAXHOST> host{};
  getnameinfo(address.get(), address.length, host.data(), host.size(), nullptr, 0, NI_NUMERICHOST);
  return host.data();
}

Socket open_socket(const Address& address, int kind) {
  Socket out(::socket(address.storage.ss_family, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  RANKLAB_CHECK(out.is_open(), ErrorKind::kEnvironment, .where = "rendezvous",
                .what = "the system cannot create a socket", .got = std::strerror(errno), .want = "a socket",
                .fix = "raise the limit of open files (ulimit -n)");
  return out;
}

void send_at_once(const Socket& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// One attempt.
std::optional<Socket> connected(const Address& to, std::chrono::milliseconds limit) {
  Socket out = open_socket(to, SOCK_STREAM);
  if (::connect(out.get(), to.get(), to.length) != 0) {
    if (errno != EINPROGRESS) return std::nullopt;
    pollfd ready{out.get(), POLLOUT, 0};
    if (::poll(&ready, 1, static_cast<int>(limit.count())) <= 0) return std::nullopt;
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(out.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return std::nullopt;
  }
  return out;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    descriptor_ = std::exchange(other.descriptor_, -1);
  }
  return *this;
}

void Socket::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

std::string resolve_host(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  RANKLAB_CHECK(code == 0 && found != nullptr, ErrorKind::kInvalidArgument, .where = "rendezvous",
                .what = "the host of rank 0 is not known",
                .got = "MASTER_ADDR " + quote(host) + ": " + gai_strerror(code),
                .want = "a name or an address of that host", .fix = "check --master-addr, or MASTER_ADDR");
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  // Prefers IPv4: Gloo announces one address.
  const addrinfo* best = found;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_family == AF_INET) {
      best = each;
      break;
    }
  }
  Address address;
  std::memcpy(&address.storage, best->ai_addr, best->ai_addrlen);
  address.length = best->ai_addrlen;
  return text_of(address);
}

bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

Socket listen_on(const std::string& address, int port) {
  const Address at = numeric(address, port);
  Socket out = open_socket(at, SOCK_STREAM);
  const int on = 1;
  ::setsockopt(out.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(out.get(), at.get(), at.length) == 0 && ::listen(out.get(), SOMAXCONN) == 0) return out;
  const bool taken = errno == EADDRINUSE;
  throw Error(ErrorKind::kEnvironment,
              {.where = "rendezvous, rank 0",
               .what = taken ? "the port is in use" : "cannot listen on the address of rank 0",
               .got = address + ":" + std::to_string(port) + ": " + std::strerror(errno),
               .want = taken ? "a free port" : "an address of this host",
               .fix = taken ? "pass another --master-port (MASTER_PORT), or end what listens there (ss -ltnp)"
                            : "set --master-addr (MASTER_ADDR) to an address of the host that runs rank 0"});
}

Socket listen_on_unix() { return std::move(*listen_on_unix("")); }

std::optional<Socket> listen_on_unix(const std::string& name) {
  const Address at = unix_address(name);  // without a name: unix(7), autobind
  Socket out = open_socket(at, SOCK_STREAM);
  if (::bind(out.get(), at.get(), at.length) == 0 && ::listen(out.get(), SOMAXCONN) == 0) return out;
  RANKLAB_CHECK(errno == EADDRINUSE && !name.empty(), ErrorKind::kEnvironment, .where = "rendezvous",
                .what = "cannot listen on a unix socket", .got = std::strerror(errno), .want = "unix sockets (AF_UNIX)",
                .fix = name.empty() ? "allow them to this process, or pass --transport tcp"
                                    : "allow them to this process, or give all ranks one RANKLAB_RUN_TOKEN");
  return std::nullopt;
}

std::string unix_name(const Socket& listener) {
  Address at;
  at.length = sizeof at.storage;
  ::getsockname(listener.get(), at.get(), &at.length);
  const auto* in = reinterpret_cast<const sockaddr_un*>(&at.storage);
  return {in->sun_path, at.length - offsetof(sockaddr_un, sun_path)};
}

std::optional<Socket> connect_to_unix(const std::string& name, std::chrono::milliseconds limit) {
  if (name.empty() || name.size() > sizeof(sockaddr_un::sun_path)) return std::nullopt;
  return connected(unix_address(name), limit);
}

std::optional<int64_t> peer_user(const Socket& socket) {
  int domain = 0;
  socklen_t length = sizeof domain;
  ::getsockopt(socket.get(), SOL_SOCKET, SO_DOMAIN, &domain, &length);
  ucred of{};
  length = sizeof of;
  // For other sockets the call succeeds, with user -1.
  if (domain != AF_UNIX || ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &of, &length) != 0) return std::nullopt;
  return of.uid;
}

int port_of(const Socket& listener) {
  Address at;
  at.length = sizeof at.storage;
  ::getsockname(listener.get(), at.get(), &at.length);
  const auto* in = reinterpret_cast<const sockaddr_in*>(&at.storage);
  const auto* in6 = reinterpret_cast<const sockaddr_in6*>(&at.storage);
  return ntohs(at.storage.ss_family == AF_INET6 ? in6->sin6_port : in->sin_port);
}

Socket accept_one(const Socket& listener) {
  Socket out(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (out.is_open()) send_at_once(out);  // no effect on a unix socket
  return out;
}

std::optional<Socket> connect_to(const std::string& address, int port, std::chrono::milliseconds limit) {
  std::optional<Socket> out = connected(numeric(address, port), limit);
  if (out) send_at_once(*out);
  return out;
}

std::string local_address(const Socket& socket) {
  Address at;
  at.length = sizeof at.storage;
  ::getsockname(socket.get(), at.get(), &at.length);
  return text_of(at);
}

std::string peer_address(const Socket& socket) {
  Address at;
  at.length = sizeof at.storage;
  ::getpeername(socket.get(), at.get(), &at.length);
  return text_of(at);
}

std::string route_source(const std::string& address) {
  const Address to = numeric(address, 9);
  const Socket probe = open_socket(to, SOCK_DGRAM);
  // Connecting a datagram socket sends nothing; it only chooses the route.
  if (::connect(probe.get(), to.get(), to.length) != 0) return address;
  return local_address(probe);
}

Socket wake_event() { return Socket(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

void wake(const Socket& event) {
  const uint64_t one = 1;
  // A counter at its maximum wakes, too.
  [[maybe_unused]] const ssize_t written = ::write(event.get(), &one, sizeof one);
}

long receive_some(const Socket& socket, std::string& into, size_t most) {
  std::array<char, 16 << 10> buffer;  // left uninitialized: recv reports how much of it is valid
  const ssize_t got = ::recv(socket.get(), buffer.data(), std::min(most, buffer.size()), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? -1 : 0;
  into.append(buffer.data(), static_cast<size_t>(got));
  return got;
}

long send_some(const Socket& socket, const std::string& bytes, size_t from) {
  const ssize_t sent = ::send(socket.get(), bytes.data() + from, bytes.size() - from, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) return sent;
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? 0 : -1;
}

}  // namespace ranklab::cpu_sim
