#include "backends/cpu_sim/inproc_transport.h"

#include <gloo/common/error.h>
#include <gloo/transport/address.h>
#include <gloo/transport/buffer.h>
#include <gloo/transport/context.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/unbound_buffer.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace ranklab::cpu_sim {
namespace {

namespace transport = gloo::transport;

// Completions of a buffer's operations in one direction.
struct Completions {
  std::deque<int> peers;  // who it was, oldest first
  bool aborted = false;
  std::condition_variable changed;
};

// What a pending operation knows of its buffer. `moving` counts copies under way: the memory must outlive them.
struct BufferState {
  std::mutex mutex;
  Completions sends, recvs;
  std::string error;
  int moving = 0;
  std::condition_variable idle;
};

struct Operation {
  std::shared_ptr<BufferState> buffer;
  char* bytes;
  size_t length;
  int rank;                  // who issued it
  std::vector<int> sources;  // of a receive
};

void complete(const Operation& op, bool is_send, int peer, const std::string& error) {
  const std::lock_guard lock(op.buffer->mutex);
  Completions& done = is_send ? op.buffer->sends : op.buffer->recvs;
  done.peers.push_back(peer);
  if (!error.empty()) op.buffer->error = error;
  --op.buffer->moving;
  op.buffer->idle.notify_all();
  done.changed.notify_all();
}

// Where sends and receives of one group meet.
class Hub {
 public:
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

  // Forgets the operations of a buffer that is going away.
  void cancel(const BufferState* buffer) {
    const std::lock_guard lock(mutex_);
    for (auto it = queues_.begin(); it != queues_.end();) {
      const auto mine = [&](const Operation& op) { return op.buffer.get() == buffer; };
      std::erase_if(it->second.sends, mine);
      std::erase_if(it->second.recvs, mine);
      it = it->second.empty() ? queues_.erase(it) : std::next(it);
    }
  }

  void close() {
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    closed_ = true;
    for (auto& [key, queue] : queues_) {
      for (auto* side : {&queue.sends, &queue.recvs}) {
        for (const Operation& op : *side) {
          const std::lock_guard buffer_lock(op.buffer->mutex);
          op.buffer->error = kClosed;
          op.buffer->sends.changed.notify_all();
          op.buffer->recvs.changed.notify_all();
        }
      }
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

  // Copies outside the lock; both buffers are marked first, so that neither goes away meanwhile.
  static void move(const Operation& sent, const Operation& received, std::unique_lock<std::mutex>& lock) {
    for (const Operation* op : {&sent, &received}) {
      const std::lock_guard buffer_lock(op->buffer->mutex);
      ++op->buffer->moving;
    }
    lock.unlock();
    std::string error;
    if (sent.length != received.length)
      error = "rank " + std::to_string(sent.rank) + " sent " + std::to_string(sent.length) + " bytes, rank " +
              std::to_string(received.rank) + " receives " + std::to_string(received.length);
    else if (sent.length > 0)
      std::memcpy(received.bytes, sent.bytes, sent.length);
    complete(sent, true, received.rank, error);
    complete(received, false, sent.rank, error);
  }

  std::mutex mutex_;
  std::map<Key, Queue> queues_;
  bool closed_ = false;
};

class InprocBuffer final : public transport::UnboundBuffer {
 public:
  InprocBuffer(std::shared_ptr<Hub> hub, int rank, std::chrono::milliseconds timeout, void* memory, size_t length)
      : UnboundBuffer(memory, length), hub_(std::move(hub)), rank_(rank), timeout_(timeout) {}

  ~InprocBuffer() override {
    hub_->cancel(state_.get());
    std::unique_lock lock(state_->mutex);
    state_->idle.wait(lock, [&] { return state_->moving == 0; });
  }

  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override { return wait(state_->recvs, rank, timeout); }
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override { return wait(state_->sends, rank, timeout); }
  void abortWaitRecv() override { abort(state_->recvs); }
  void abortWaitSend() override { abort(state_->sends); }

  void send(int destination, uint64_t slot, size_t offset, size_t length) override {
    hub_->send(destination, slot, operation(offset, length, {}));
  }
  void recv(int source, uint64_t slot, size_t offset, size_t length) override {
    hub_->recv(rank_, slot, operation(offset, length, {source}));
  }
  void recv(std::vector<int> sources, uint64_t slot, size_t offset, size_t length) override {
    hub_->recv(rank_, slot, operation(offset, length, std::move(sources)));
  }

 private:
  Operation operation(size_t offset, size_t length, std::vector<int> sources) const {
    return {state_, static_cast<char*>(ptr) + offset, length == kUnspecifiedByteCount ? size - offset : length, rank_,
            std::move(sources)};
  }

  bool wait(Completions& done, int* rank, std::chrono::milliseconds timeout) {
    std::unique_lock lock(state_->mutex);
    const auto ready = [&] { return !done.peers.empty() || done.aborted || !state_->error.empty(); };
    const auto limit = timeout == transport::kUnsetTimeout ? timeout_ : timeout;
    if (!done.changed.wait_for(lock, limit, ready))
      throw gloo::IoException("no peer came within " + std::to_string(limit.count()) + " ms");
    if (!state_->error.empty()) throw gloo::IoException(state_->error);
    if (done.aborted) {
      done.aborted = false;
      return false;
    }
    if (rank != nullptr) *rank = done.peers.front();
    done.peers.pop_front();
    return true;
  }

  void abort(Completions& done) {
    const std::lock_guard lock(state_->mutex);
    done.aborted = true;
    done.changed.notify_all();
  }

  std::shared_ptr<Hub> hub_;
  int rank_;
  std::chrono::milliseconds timeout_;
  std::shared_ptr<BufferState> state_ = std::make_shared<BufferState>();
};

class InprocAddress final : public transport::Address {
 public:
  std::string str() const override { return "inproc"; }
  std::vector<char> bytes() const override { return {}; }
};

// Only a place to close from: messages go through unbound buffers. Gloo's older bound buffers are not offered.
class InprocPair final : public transport::Pair {
 public:
  explicit InprocPair(std::shared_ptr<Hub> hub) : hub_(std::move(hub)) {}
  const transport::Address& address() const override { return address_; }
  void connect(const std::vector<char>&) override {}
  void close() override { hub_->close(); }
  void setSync(bool, bool) override {}
  std::unique_ptr<transport::Buffer> createSendBuffer(int, void*, size_t) override { refuse(); }
  std::unique_ptr<transport::Buffer> createRecvBuffer(int, void*, size_t) override { refuse(); }
  void send(transport::UnboundBuffer*, uint64_t, size_t, size_t) override { refuse(); }
  void recv(transport::UnboundBuffer*, uint64_t, size_t, size_t) override { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    throw gloo::InvalidOperationException("the in-process transport has unbound buffers only");
  }
  std::shared_ptr<Hub> hub_;
  InprocAddress address_;
};

class InprocContext final : public transport::Context {
 public:
  InprocContext(std::shared_ptr<Hub> hub, int context_rank, int context_size)
      : Context(context_rank, context_size), hub_(std::move(hub)) {}
  std::unique_ptr<transport::Pair>& createPair(int peer) override {
    auto& pair = pairs_[static_cast<size_t>(peer)];
    pair = std::make_unique<InprocPair>(hub_);
    return pair;
  }
  std::unique_ptr<transport::UnboundBuffer> createUnboundBuffer(void* memory, size_t length) override {
    return std::make_unique<InprocBuffer>(hub_, rank, getTimeout(), memory, length);
  }

 private:
  std::shared_ptr<Hub> hub_;
};

class InprocDevice final : public transport::Device {
 public:
  std::string str() const override { return "inproc"; }
  const std::string& getPCIBusID() const override { return no_bus_; }
  std::shared_ptr<transport::Context> createContext(int rank, int size) override {
    return std::make_shared<InprocContext>(hub_, rank, size);
  }

 private:
  std::shared_ptr<Hub> hub_ = std::make_shared<Hub>();
  std::string no_bus_;
};

class ConnectedContext final : public gloo::Context {
 public:
  ConnectedContext(int context_rank, int context_size, std::shared_ptr<transport::Device> device,
                   std::chrono::milliseconds timeout)
      : Context(context_rank, context_size) {
    device_ = std::move(device);
    setTimeout(timeout);
    transportContext_ = device_->createContext(context_rank, context_size);
    transportContext_->setTimeout(timeout);
    for (int peer = 0; peer < context_size; ++peer)
      if (peer != context_rank) transportContext_->createPair(peer);
  }
};

}  // namespace

std::shared_ptr<gloo::transport::Device> make_inproc_device() { return std::make_shared<InprocDevice>(); }

std::vector<std::shared_ptr<gloo::Context>> make_inproc_contexts(int size, std::chrono::milliseconds timeout) {
  const auto device = make_inproc_device();
  std::vector<std::shared_ptr<gloo::Context>> out;
  for (int rank = 0; rank < size; ++rank)
    out.push_back(std::make_shared<ConnectedContext>(rank, size, device, timeout));
  return out;
}

}  // namespace ranklab::cpu_sim
