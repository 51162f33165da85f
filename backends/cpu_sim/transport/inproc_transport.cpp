#include "backends/cpu_sim/transport/inproc_transport.h"

#include <gloo/common/error.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "backends/cpu_sim/transport/waited_buffer.h"

namespace ranklab::cpu_sim {
namespace {

struct Operation {
  BufferOperation at;
  int rank;                  // who issued it
  std::vector<int> sources;  // of a receive
};

// Matches sends and receives of one group.
class Hub final : public GroupTransport, public std::enable_shared_from_this<Hub> {
 public:
  std::unique_ptr<gloo::transport::UnboundBuffer> buffer(int rank, void* memory, size_t length,
                                                         std::chrono::milliseconds timeout) override;

  void send(int destination, uint64_t slot, Operation op) {
    std::unique_lock lock(mutex_);
    throw_if_closed();
    Queue& queue = queues_[{destination, slot}];
    const auto match = std::find_if(queue.recvs.begin(), queue.recvs.end(), [&](const Operation& recv) {
      return std::find(recv.sources.begin(), recv.sources.end(), op.rank) != recv.sources.end();
    });
    if (match == queue.recvs.end()) {
      queue.sends.push_back(std::move(op));
      return;
    }
    const Operation recv = take(queue.recvs, match, destination, slot);
    move(op, recv, lock);
  }

  void recv(int destination, uint64_t slot, Operation op) {
    std::unique_lock lock(mutex_);
    throw_if_closed();
    Queue& queue = queues_[{destination, slot}];
    const auto match = std::find_if(queue.sends.begin(), queue.sends.end(), [&](const Operation& sent) {
      return std::find(op.sources.begin(), op.sources.end(), sent.rank) != op.sources.end();
    });
    if (match == queue.sends.end()) {
      queue.recvs.push_back(std::move(op));
      return;
    }
    const Operation sent = take(queue.sends, match, destination, slot);
    move(sent, op, lock);
  }

  // Drops the operations of a buffer that is being destroyed.
  void cancel(const BufferState* buffer) {
    const std::lock_guard lock(mutex_);
    for (auto it = queues_.begin(); it != queues_.end();) {
      const auto mine = [&](const Operation& op) { return op.at.buffer.get() == buffer; };
      std::erase_if(it->second.sends, mine);
      std::erase_if(it->second.recvs, mine);
      it = it->second.empty() ? queues_.erase(it) : std::next(it);
    }
  }

  void close() override {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
    for (auto& [key, queue] : queues_) {
      for (auto* side : {&queue.sends, &queue.recvs})
        for (const Operation& op : *side) op.at.buffer->fail(kClosed);
    }
    queues_.clear();
  }

 private:
  static constexpr const char* kClosed = "the group was closed by a failing member";
  struct Queue {
    std::deque<Operation> sends, recvs;
    bool empty() const { return sends.empty() && recvs.empty(); }
  };
  using Key = std::pair<int, uint64_t>;  // destination, slot

  void throw_if_closed() const {
    if (closed_) throw gloo::IoException(kClosed);
  }

  Operation take(std::deque<Operation>& side, std::deque<Operation>::iterator which, int destination, uint64_t slot) {
    Operation op = std::move(*which);
    side.erase(which);
    const auto queue = queues_.find({destination, slot});
    if (queue->second.empty()) queues_.erase(queue);
    return op;
  }

  // Copies outside the lock; both buffers are marked first, so that neither is destroyed meanwhile.
  static void move(const Operation& sent, const Operation& received, std::unique_lock<std::mutex>& lock) {
    for (const Operation* op : {&sent, &received}) op->at.buffer->begin_copy();
    lock.unlock();
    std::string error;
    if (sent.at.length != received.at.length)
      error = sizes_differ(sent.rank, sent.at.length, received.rank, received.at.length);
    else if (sent.at.length > 0)
      std::memcpy(received.at.bytes, sent.at.bytes, sent.at.length);
    sent.at.buffer->complete(Direction::kSend, received.rank, error);
    received.at.buffer->complete(Direction::kRecv, sent.rank, error);
    for (const Operation* op : {&sent, &received}) op->at.buffer->end_copy();
  }

  std::mutex mutex_;
  std::map<Key, Queue> queues_;
  bool closed_ = false;
};

class InprocBuffer final : public WaitedBuffer {
 public:
  InprocBuffer(std::shared_ptr<Hub> hub, int rank, std::chrono::milliseconds timeout, void* memory, size_t length)
      : WaitedBuffer(memory, length, timeout), hub_(std::move(hub)), rank_(rank) {}

  ~InprocBuffer() override {
    if (state().has_pending()) hub_->cancel(&state());
    state().wait_idle();
  }

  void send(int destination, uint64_t slot, size_t offset, size_t length) override {
    hub_->send(destination, slot, {operation(offset, length), rank_, {}});
  }
  void recv(int source, uint64_t slot, size_t offset, size_t length) override {
    hub_->recv(rank_, slot, {operation(offset, length), rank_, {source}});
  }
  void recv(std::vector<int> sources, uint64_t slot, size_t offset, size_t length) override {
    hub_->recv(rank_, slot, {operation(offset, length), rank_, std::move(sources)});
  }

 private:
  std::shared_ptr<Hub> hub_;
  int rank_;
};

std::unique_ptr<gloo::transport::UnboundBuffer> Hub::buffer(int rank, void* memory, size_t length,
                                                            std::chrono::milliseconds timeout) {
  return std::make_unique<InprocBuffer>(shared_from_this(), rank, timeout, memory, length);
}

}  // namespace

GlooContexts make_inproc_contexts(int size, std::chrono::milliseconds timeout) {
  const auto hub = std::make_shared<Hub>();
  GlooContexts out;
  for (int rank = 0; rank < size; ++rank) out.push_back(connected_context(rank, size, hub, timeout));
  return out;
}

}  // namespace ranklab::cpu_sim
