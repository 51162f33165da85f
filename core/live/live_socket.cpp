#include "core/live/live_socket.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

constexpr size_t kReadBytes = 64 << 10;
constexpr int kBacklog = 8;

[[noreturn]] void fail(const std::string& what, const std::string& path, const std::string& got,
                       const std::string& fix) {
  throw Error(ErrorKind::kIo, {.where = "live attach", .what = what + " " + quote(path), .got = got, .fix = fix});
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    fail("a socket's path is too long:", path, std::to_string(path.size()) + " bytes",
         "at most " + std::to_string(sizeof address.sun_path - 1) + "; give a shorter one (--viz-listen PATH)");
  std::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

LiveSocket new_socket(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) fail("no socket for", path, std::strerror(errno), "raise the limit of open files (ulimit -n)");
  return LiveSocket(fd);
}

int connect_once(const LiveSocket& socket, const sockaddr_un& address) {
  return ::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

}  // namespace

LiveSocket::~LiveSocket() { close(); }

LiveSocket& LiveSocket::operator=(LiveSocket&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
  }
  return *this;
}

void LiveSocket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

int LiveSocket::release() { return std::exchange(fd_, -1); }

bool LiveSocket::receive(std::string& into) {
  std::array<char, kReadBytes> bytes;
  const ssize_t count = ::recv(fd_, bytes.data(), bytes.size(), 0);
  if (count > 0) into.append(bytes.data(), static_cast<size_t>(count));
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

long LiveSocket::send(std::string_view bytes) {
  const ssize_t count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (count >= 0) return count;
  return errno == EAGAIN || errno == EINTR ? 0 : -1;
}

LiveSocket listen_at(const std::string& path) {
  const sockaddr_un address = address_of(path);
  struct stat there {};
  if (::lstat(path.c_str(), &there) == 0) {
    if (!S_ISSOCK(there.st_mode)) fail("cannot listen at", path, "a file of that name", "give another path");
    const int error = connect_once(new_socket(path), address);
    if (error == 0 || error == EAGAIN)  // EAGAIN: its queue is full
      fail("cannot listen at", path, "a run that listens there", "give another path (--viz-listen PATH)");
    ::unlink(path.c_str());
  }
  LiveSocket socket = new_socket(path);
  ::fchmod(socket.fd(), 0600);  // bind() creates the file with this mode, so it is never open to others
  if (::bind(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::chmod(path.c_str(), 0600) != 0 || ::listen(socket.fd(), kBacklog) != 0)
    fail("cannot listen at", path, std::strerror(errno), "give a path in a folder you may write to");
  return socket;
}

LiveSocket accept_viewer(const LiveSocket& listener) {
  LiveSocket viewer(::accept4(listener.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!viewer.is_open()) return viewer;
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool known = ::getsockopt(viewer.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  if (!known || (peer.uid != ::geteuid() && peer.uid != 0)) viewer.close();
  return viewer;
}

LiveSocket connect_to(const std::string& path) {
  const sockaddr_un address = address_of(path);
  LiveSocket socket = new_socket(path);
  const int error = connect_once(socket, address);
  if (error == EAGAIN)
    fail("no place among the viewers that wait at", path, "a full queue",
         "wait until the run answers (a debugger may hold it), or end viewers of it, and attach again");
  if (error != 0)
    fail("no run listens at", path, std::strerror(error),
         "start one: ranklab train --viz-listen, and attach while it runs");
  return socket;
}

}  // namespace ranklab
