// A buffer shared by both Gloo transports of this folder, whose waits see completions in order, have time limits, end
// with the transport's error, and can be aborted. Thread rule: any thread.
#pragma once
#include <gloo/transport/unbound_buffer.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

namespace ranklab::cpu_sim {

enum class Direction { kSend, kRecv };

// State of a buffer used by pending operations; outlives the buffer while a transport still holds an operation.
class BufferState {
 public:
  void issued();
  void complete(Direction direction, int peer, const std::string& error = {});
  void fail(const std::string& error);  // fails every wait, now and later
  bool has_pending() const;
  // Between these two calls the transport copies bytes on its own thread; wait_idle() returns when no copy is running.
  void begin_copy();
  void end_copy();
  void wait_idle();

  // RETURNS: false if aborted. Throws gloo::IoException with the transport's error, or when `limit` is over.
  bool wait(Direction direction, int* peer, std::chrono::milliseconds limit);
  void abort(Direction direction);

 private:
  struct Completions {
    std::deque<int> peers;  // the peers of completed operations, oldest first
    bool aborted = false;
    std::condition_variable changed;
  };
  Completions& of(Direction direction) { return direction == Direction::kSend ? sends_ : recvs_; }

  mutable std::mutex mutex_;
  Completions sends_, recvs_;
  std::string error_;
  int pending_ = 0;
  int copies_ = 0;
  std::condition_variable idle_;
};

// A range of a buffer on its way to or from a peer, which is identified by its rank in the group.
struct BufferOperation {
  std::shared_ptr<BufferState> buffer;
  char* bytes;
  size_t length;
};

class WaitedBuffer : public gloo::transport::UnboundBuffer {
 public:
  WaitedBuffer(void* memory, size_t length, std::chrono::milliseconds timeout)
      : UnboundBuffer(memory, length), timeout_(timeout) {}
  bool waitRecv(int* rank, std::chrono::milliseconds timeout) final {
    return state_->wait(Direction::kRecv, rank, limit(timeout));
  }
  bool waitSend(int* rank, std::chrono::milliseconds timeout) final {
    return state_->wait(Direction::kSend, rank, limit(timeout));
  }
  void abortWaitRecv() final { state_->abort(Direction::kRecv); }
  void abortWaitSend() final { state_->abort(Direction::kSend); }

 protected:
  BufferOperation operation(size_t offset, size_t length) const {
    state_->issued();
    return {state_, static_cast<char*>(ptr) + offset, length == kUnspecifiedByteCount ? size - offset : length};
  }
  BufferState& state() const { return *state_; }

 private:
  std::chrono::milliseconds limit(std::chrono::milliseconds asked) const {
    return asked == gloo::transport::kUnsetTimeout ? timeout_ : asked;
  }
  std::chrono::milliseconds timeout_;
  std::shared_ptr<BufferState> state_ = std::make_shared<BufferState>();
};

// "rank 1 sent 16 bytes, rank 0 receives 20", with ranks in the group.
std::string sizes_differ(int sender, size_t sent, int receiver, size_t received);

}  // namespace ranklab::cpu_sim
