// Unix sockets for live attach: one end listens in the run's folder, accessible to its owner only, the other connects.
// Nothing here waits for the peer. Thread rule: one thread per socket.
#pragma once
#include <string>
#include <string_view>

namespace ranklab {

// Owns a file descriptor.
class LiveSocket {
 public:
  explicit LiveSocket(int fd = -1) : fd_(fd) {}
  ~LiveSocket();
  LiveSocket(LiveSocket&& other) noexcept : fd_(other.release()) {}
  LiveSocket& operator=(LiveSocket&& other) noexcept;

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close();
  int release();

  // Appends at most 64 KiB of received bytes to `into`; false when the peer is gone.
  bool receive(std::string& into);
  // Sends as many of `bytes` as the system accepts and returns how many; -1 when the peer is gone.
  long send(std::string_view bytes);

 private:
  int fd_;
};

// Listens at `path` with mode 0600, replacing a socket that a dead run left. Throws kIo naming the path: too long, not
// writable, or in use by a live run.
LiveSocket listen_at(const std::string& path);
// The next waiting viewer, if any; one of another user is rejected.
LiveSocket accept_viewer(const LiveSocket& listener);
// Throws kIo when nobody listens there, or too many wait already.
LiveSocket connect_to(const std::string& path);

}  // namespace ranklab
