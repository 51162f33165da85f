// One connection between two processes, which carries the messages of all their groups. The receiver announces that it
// is ready and how many bytes it takes; only then is the sender's payload sent, so it arrives in its buffer without a
// copy, nothing is stored for later, and no message blocks another. The sending thread writes what the socket accepts;
// the thread of PeerLinks (peer_links.h) writes the rest and reads. A size mismatch is an exception at both ends.
// Thread rule: any thread.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "backends/cpu_sim/transport/socket.h"
#include "backends/cpu_sim/transport/waited_buffer.h"

namespace ranklab::cpu_sim {

// A message stream between two processes: one slot of one group.
struct LinkSlot {
  uint64_t group = 0;
  uint64_t slot = 0;
  auto operator<=>(const LinkSlot&) const = default;
};

struct LinkOperation {
  BufferOperation at;
  int self = 0;  // ranks within the group
  int peer = 0;
};

class DataLink {
 public:
  // `epoll` watches the socket; it also watches for writability while there is something left to write.
  DataLink(Socket socket, std::string peer_name, int epoll);
  DataLink(const DataLink&) = delete;

  // These throw gloo::IoException if the link or the group has failed.
  void send(const LinkSlot& slot, LinkOperation op);
  void recv(const LinkSlot& slot, LinkOperation op);
  // Drops operations of a buffer that is being destroyed. If one is partly transferred, the link fails.
  void forget(const BufferState* buffer);
  // Closes a group here and at the peer: pending and later operations fail.
  void close_group(uint64_t group);
  // Fails everything on this link; only the first reason counts.
  void fail(const std::string& why);

  // For the event loop: read or write what the socket allows now.
  void read_some();
  void write_some();

 private:
  enum class Kind : uint64_t { kReady, kData, kUnequal, kClose, kCount };
  struct Header {
    uint64_t kind = 0;
    uint64_t group = 0;
    uint64_t slot = 0;
    uint64_t length = 0;
  };
  struct Outgoing {
    Header header;
    std::optional<LinkOperation> op;  // sent with its payload
    size_t written = 0;
  };
  struct Incoming {
    Header header;
    size_t header_read = 0;
    std::optional<LinkOperation> op;
    size_t read = 0;
  };
  using Operations = std::map<LinkSlot, std::deque<LinkOperation>>;

  // The following functions require that mutex_ is held.
  void check(uint64_t group) const;
  void start(const LinkSlot& slot, LinkOperation op, uint64_t wanted);
  void queue(Kind kind, const LinkSlot& slot, uint64_t length, std::optional<LinkOperation> op = std::nullopt);
  void flush();
  void watch_for_space(bool on);
  bool read_header();
  bool read_payload();
  void take(Header header);
  void end_group(uint64_t group);
  void end(const std::string& why);
  std::optional<LinkOperation> pop(Operations& operations, const LinkSlot& slot);

  std::mutex mutex_;
  Socket socket_;
  const std::string peer_name_;
  const int epoll_;
  bool watches_for_room_ = false;
  std::string failure_;
  std::set<uint64_t> closed_groups_;
  Operations sends_, recvs_;                          // waiting for the peer
  std::map<LinkSlot, std::deque<uint64_t>> readies_;  // bytes that the peer has announced it accepts
  std::deque<Outgoing> out_;
  Incoming in_;
};

}  // namespace ranklab::cpu_sim
