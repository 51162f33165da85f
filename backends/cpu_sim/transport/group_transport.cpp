#include "backends/cpu_sim/transport/group_transport.h"

#include <gloo/common/error.h>
#include <gloo/transport/address.h>
#include <gloo/transport/buffer.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>

#include <mutex>
#include <string>
#include <utility>

namespace ranklab::cpu_sim {
namespace {

namespace transport = gloo::transport;

class NoAddress final : public transport::Address {
 public:
  std::string str() const override { return "ranklab"; }
  std::vector<char> bytes() const override { return {}; }
};

// Exists only so that it can be closed: messages go through unbound buffers.
class GroupPair final : public transport::Pair {
 public:
  explicit GroupPair(std::shared_ptr<GroupTransport> group) : group_(std::move(group)) {}
  const transport::Address& address() const override { return address_; }
  void connect(const std::vector<char>&) override {}
  void close() override { group_->close(); }
  void setSync(bool, bool) override {}
  std::unique_ptr<transport::Buffer> createSendBuffer(int, void*, size_t) override { refuse(); }
  std::unique_ptr<transport::Buffer> createRecvBuffer(int, void*, size_t) override { refuse(); }
  void send(transport::UnboundBuffer*, uint64_t, size_t, size_t) override { refuse(); }
  void recv(transport::UnboundBuffer*, uint64_t, size_t, size_t) override { refuse(); }

 private:
  [[noreturn]] static void refuse() {
    throw gloo::InvalidOperationException("this transport has unbound buffers only");
  }
  std::shared_ptr<GroupTransport> group_;
  NoAddress address_;
};

class GroupTransportContext final : public transport::Context {
 public:
  GroupTransportContext(std::shared_ptr<GroupTransport> group, int context_rank, int context_size)
      : Context(context_rank, context_size), group_(std::move(group)) {}
  std::unique_ptr<transport::Pair>& createPair(int peer) override { return getPair(peer); }
  // Created on demand, which is when the group is closed: creating them in advance for each of 512 members would make a
  // quarter of a million. Several failing members may close it concurrently.
  std::unique_ptr<transport::Pair>& getPair(int peer) override {
    const std::lock_guard lock(pairs_mutex_);
    auto& pair = pairs_[static_cast<size_t>(peer)];
    if (!pair) pair = std::make_unique<GroupPair>(group_);
    return pair;
  }
  std::unique_ptr<transport::UnboundBuffer> createUnboundBuffer(void* memory, size_t length) override {
    return group_->buffer(rank, memory, length, getTimeout());
  }

 private:
  std::shared_ptr<GroupTransport> group_;
  std::mutex pairs_mutex_;
};

class GroupDevice final : public transport::Device {
 public:
  explicit GroupDevice(std::shared_ptr<GroupTransport> group) : group_(std::move(group)) {}
  std::string str() const override { return "ranklab"; }
  const std::string& getPCIBusID() const override { return no_bus_; }
  std::shared_ptr<transport::Context> createContext(int rank, int size) override {
    return std::make_shared<GroupTransportContext>(group_, rank, size);
  }

 private:
  std::shared_ptr<GroupTransport> group_;
  std::string no_bus_;
};

class ConnectedContext final : public gloo::Context {
 public:
  ConnectedContext(int context_rank, int context_size, std::shared_ptr<GroupTransport> group,
                   std::chrono::milliseconds timeout)
      : Context(context_rank, context_size) {
    device_ = std::make_shared<GroupDevice>(std::move(group));
    setTimeout(timeout);
    transportContext_ = device_->createContext(context_rank, context_size);
    transportContext_->setTimeout(timeout);
  }
};

}  // namespace

std::shared_ptr<gloo::Context> connected_context(int rank, int size, std::shared_ptr<GroupTransport> transport,
                                                 std::chrono::milliseconds timeout) {
  return std::make_shared<ConnectedContext>(rank, size, std::move(transport), timeout);
}

}  // namespace ranklab::cpu_sim
