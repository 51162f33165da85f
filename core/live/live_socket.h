// Unix sockets for live attach: one end listens in the run's folder, readable by its owner alone, the other connects.
// Nothing here waits for the peer. Thread rule: one thread per socket.
#pragma once
#include <string>
#include <string_view>

namespace ranklab {

// Owns a descriptor.
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

  // Adds at most 64 KiB of what has come to `into`; false when the peer is gone.
  bool receive(std::string& into);
  // Sends what the system takes of `bytes` and returns how much; -1 when the peer is gone.
  long send(std::string_view bytes);

 private:
  int fd_;
};

// Listens at `path` with mode 0600, in place of a socket that a dead run left. Throws kIo naming the path: too long,
// not writable, or in use by a run that lives.
LiveSocket listen_at(const std::string& path);
// The next viewer that waits, if one does; one of another user is turned away.
LiveSocket accept_viewer(const LiveSocket& listener);
// Throws kIo when nobody listens there.
LiveSocket connect_to(const std::string& path);

}  // namespace ranklab
