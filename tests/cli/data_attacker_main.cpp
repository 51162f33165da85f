// Another user of the host, for launch_attack_test: connects to whatever listens in its network namespace (TCP on the
// loopback interface, unix sockets without a file), as early and as often as it can. Some connections stay silent, some
// send garbage, some are joined in pairs so that each receives what the other sends; a port that was released is taken
// over. Runs until SIGTERM; then it prints what it got: connections, bytes beyond a challenge, peers that connected to
// a port it took.
#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace {

volatile sig_atomic_t stopping = 0;
constexpr size_t kChallengeBytes = 56;  // a frame's header and a nonce of 32 bytes with its length
constexpr size_t kMostOpen = 128;
constexpr unsigned kNobody = 65534;

struct Connection {
  int socket = -1;
  int partner = -1;  // hears what this one says
  size_t received = 0;
};

struct Attack {
  std::deque<Connection> open;
  std::map<int, int> taken;  // listening socket by port
  std::set<int> ports;       // that somebody listened at
  long connections = 0, beyond = 0, visitors = 0;
};

void bring_loopback_up() {
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  request.ifr_flags = IFF_UP;
  const int any = ::socket(AF_INET, SOCK_DGRAM, 0);
  if (::ioctl(any, SIOCSIFFLAGS, &request) != 0) std::perror("lo");
  ::close(any);
}

sockaddr_in loopback(int port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<uint16_t>(port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

void add(Attack& attack, int socket) {
  attack.open.push_back({socket, -1, 0});
  const long kind = attack.connections++ % 3;
  if (kind == 1) (void)!::send(socket, "0123456789abcdef0123456789abcdef", 32, MSG_NOSIGNAL);
  if (kind == 2 && attack.open.size() > 1) {
    Connection& other = attack.open[attack.open.size() - 2];
    attack.open.back().partner = other.socket;
    other.partner = socket;
  }
}

void connect_to(Attack& attack, int family, const void* address, size_t length) {
  const int socket = ::socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
  const int code = ::connect(socket, static_cast<const sockaddr*>(address), static_cast<socklen_t>(length));
  if (code == 0 || errno == EINPROGRESS) return add(attack, socket);
  ::close(socket);
}

std::set<int> tcp_listeners() {
  std::set<int> out;
  std::ifstream in("/proc/net/tcp");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string number, local, remote, state;
    words >> number >> local >> remote >> state;
    if (state == "0A") out.insert(std::stoi(local.substr(local.find(':') + 1), nullptr, 16));
  }
  return out;
}

std::set<std::string> unix_listeners() {
  std::set<std::string> out;
  std::ifstream in("/proc/net/unix");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string number, references, protocol, flags, type, state, inode, name;
    words >> number >> references >> protocol >> flags >> type >> state >> inode >> name;
    if (flags == "00010000" && name.starts_with('@')) out.insert(name.substr(1));
  }
  return out;
}

void attack_all(Attack& attack) {
  const std::set<int> listening = tcp_listeners();
  for (const int port : listening) {
    if (attack.taken.contains(port)) continue;
    attack.ports.insert(port);
    const sockaddr_in at = loopback(port);
    connect_to(attack, AF_INET, &at, sizeof at);
  }
  for (const std::string& name : unix_listeners()) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path + 1, name.data(), std::min(name.size(), sizeof at.sun_path - 1));
    connect_to(attack, AF_UNIX, &at, offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  for (const int port : attack.ports) {
    if (listening.contains(port) || attack.taken.contains(port)) continue;
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const sockaddr_in at = loopback(port);
    const bool bound = ::bind(socket, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
    if (bound && ::listen(socket, 16) == 0) attack.taken[port] = socket;
    if (!attack.taken.contains(port)) ::close(socket);
  }
}

void hear(Attack& attack) {
  for (const auto& [port, listener] : attack.taken)
    for (int socket; (socket = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK)) >= 0; ++attack.visitors)
      add(attack, socket);
  for (Connection& connection : attack.open) {
    std::array<char, 65536> bytes;
    const ssize_t got = ::recv(connection.socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) continue;
    const size_t before = connection.received;
    connection.received += static_cast<size_t>(got);
    if (connection.received > kChallengeBytes)
      attack.beyond += static_cast<long>(connection.received - std::max(before, kChallengeBytes));
    if (connection.partner >= 0)
      (void)!::send(connection.partner, bytes.data(), static_cast<size_t>(got), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  while (attack.open.size() > kMostOpen) {
    ::close(attack.open.front().socket);
    attack.open.pop_front();
  }
}

}  // namespace

int main() {
  ::signal(SIGTERM, [](int) { stopping = 1; });
  bring_loopback_up();
  if (::geteuid() == 0 && (::setgid(kNobody) != 0 || ::setuid(kNobody) != 0)) std::perror("setuid");
  std::printf("ready, user %u\n", ::geteuid());
  std::fflush(stdout);
  Attack attack;
  while (stopping == 0) {
    attack_all(attack);
    hear(attack);
    ::usleep(200);
  }
  std::printf("connections %ld beyond %ld visitors %ld\n", attack.connections, attack.beyond, attack.visitors);
  return 0;
}
