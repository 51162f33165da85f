#include "backends/cpu_sim/transport/peer_links.h"

#include <gloo/common/error.h>
#include <pthread.h>
#include <sys/epoll.h>

#include <array>
#include <utility>

#include "backends/cpu_sim/transport/handshake.h"
#include "backends/cpu_sim/transport/waited_buffer.h"
#include "core/base/text.h"

namespace ranklab::cpu_sim {
namespace {

class LinkGroup final : public GroupTransport, public std::enable_shared_from_this<LinkGroup> {
 public:
  LinkGroup(std::shared_ptr<PeerLinks> links, uint64_t id, std::vector<int> ranks, int seat)
      : links_(std::move(links)), id_(id), ranks_(std::move(ranks)), seat_(seat) {}

  std::unique_ptr<gloo::transport::UnboundBuffer> buffer(int rank, void* memory, size_t length,
                                                         std::chrono::milliseconds timeout) override;
  void close() override {
    for (const int rank : ranks_)
      if (rank != ranks_[static_cast<size_t>(seat_)]) links_->to(rank).close_group(id_);
  }
  DataLink& link(int member) { return links_->to(ranks_[static_cast<size_t>(member)]); }
  uint64_t id() const { return id_; }

 private:
  std::shared_ptr<PeerLinks> links_;
  const uint64_t id_;
  const std::vector<int> ranks_;
  const int seat_;
};

class LinkBuffer final : public WaitedBuffer {
 public:
  LinkBuffer(std::shared_ptr<LinkGroup> group, int rank, void* memory, size_t length, std::chrono::milliseconds timeout)
      : WaitedBuffer(memory, length, timeout), group_(std::move(group)), rank_(rank) {}

  ~LinkBuffer() override {
    if (!state().has_pending()) return;
    for (const int member : members_) group_->link(member).forget(&state());
  }

  void send(int destination, uint64_t slot, size_t offset, size_t length) override {
    members_.push_back(destination);
    group_->link(destination).send({group_->id(), slot}, {operation(offset, length), rank_, destination});
  }
  void recv(int source, uint64_t slot, size_t offset, size_t length) override {
    members_.push_back(source);
    group_->link(source).recv({group_->id(), slot}, {operation(offset, length), rank_, source});
  }
  // A receive that allows several senders could get several payloads. None of our calls needs this.
  void recv(std::vector<int> sources, uint64_t slot, size_t offset, size_t length) override {
    if (sources.size() != 1) throw gloo::InvalidOperationException("between processes a receive names one source");
    recv(sources[0], slot, offset, length);
  }

 private:
  std::shared_ptr<LinkGroup> group_;
  const int rank_;
  std::vector<int> members_;
};

std::unique_ptr<gloo::transport::UnboundBuffer> LinkGroup::buffer(int rank, void* memory, size_t length,
                                                                  std::chrono::milliseconds timeout) {
  return std::make_unique<LinkBuffer>(shared_from_this(), rank, memory, length, timeout);
}

}  // namespace

PeerLinks::PeerLinks(std::map<int, Socket> by_rank) : epoll_(::epoll_create1(EPOLL_CLOEXEC)), wake_(wake_event()) {
  epoll_event event{};
  event.events = EPOLLIN;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event);
  for (auto& [rank, socket] : by_rank)
    links_[rank] = std::make_unique<DataLink>(std::move(socket), rank_name(rank), epoll_.get());
  thread_ = std::thread([this] { loop(); });
}

PeerLinks::~PeerLinks() {
  stopping_ = true;
  wake(wake_);
  thread_.join();
}

void PeerLinks::loop() {
  pthread_setname_np(pthread_self(), "data");
  std::array<epoll_event, 64> events{};
  while (!stopping_) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), -1);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      auto* link = static_cast<DataLink*>(event.data.ptr);
      if (link == nullptr) continue;
      if ((event.events & EPOLLOUT) != 0) link->write_some();
      if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) link->read_some();
    }
  }
}

std::shared_ptr<gloo::Context> PeerLinks::context(std::string_view name, std::vector<int> ranks, int seat,
                                                  std::chrono::milliseconds timeout) {
  const int size = static_cast<int>(ranks.size());
  auto group = std::make_shared<LinkGroup>(shared_from_this(), short_digest(name), std::move(ranks), seat);
  return connected_context(seat, size, std::move(group), timeout);
}

void PeerLinks::fail(const std::string& why) {
  for (const auto& [rank, link] : links_) link->fail(why);
}

}  // namespace ranklab::cpu_sim
