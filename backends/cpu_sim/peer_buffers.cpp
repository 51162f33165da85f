#include "backends/cpu_sim/peer_buffers.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cpu_sim/pause.h"
#include "backends/cpu_sim/run.h"
#include "core/base/error.h"
#include "core/sim/aten.h"
#include "core/trace/tracer.h"

namespace ranklab::cpu_sim {
namespace {

// Moves no bytes: when everybody has finished, they have been written already.
class NothingToMove final : public Mover {
 public:
  void matched(Exchange& exchange) override {
    exchange.done_wall_ns = wall_now_ns();
    exchange.tell(Phase::kDone);
  }
  void complete(Exchange&, int) override {}
  bool poll(Exchange& exchange, int) override { return exchange.current() == Phase::kDone; }
  int64_t wire_bytes(const Exchange&, int) const override { return 0; }
  bool needs_thread(const Call&) const override { return false; }
};

class ThreadPeerMemory final : public PeerMemory {
 public:
  ThreadPeerMemory(std::shared_ptr<Run> run, const Group& group, const std::string& label,
                   std::shared_ptr<PeerBuffers> buffers)
      : run_(std::move(run)), group_(group), buffers_(std::move(buffers)) {
    for (const int owner : group_.global_ranks)
      finished_.push_back(
          &run_->channel({label + " puts to rank " + std::to_string(owner), group_.global_ranks, false}));
  }

  const Group& group() const override { return group_; }

  void put(int peer, const at::Tensor& rows, PutNote note) override {
    RANKLAB_CHECK(rows.is_cpu() && rows.dim() == 2 && rows.scalar_type() == at::kByte && rows.is_contiguous(),
                  ErrorKind::kInternal, .where = "peer memory", .what = "rows are not bytes in CPU memory",
                  .want = "a contiguous uint8 tensor [n, W]");
    note.source = group_.group_rank;
    note.bytes = static_cast<int64_t>(rows.nbytes());
    buffers_->buffer(peer, round_)->put(rows, note);
  }

  void finish(std::source_location site) override {
    for (int owner = 0; owner < group_.size(); ++owner) {
      Call call;
      call.site = site;
      ExchangePtr exchange =
          run_->post(*finished_[static_cast<size_t>(owner)], group_.group_rank, std::move(call), mover_);
      if (owner == group_.group_rank) own_ = std::move(exchange);
    }
  }

  Delivery take() override {
    RANKLAB_CHECK(own_ != nullptr, ErrorKind::kInternal, .where = "peer memory", .what = "take() before finish()");
    const int rank = group_.global_rank();
    const auto open = static_cast<uint32_t>(Phase::kOpen);
    if (!yield_while(own_->phase, open)) {
      run_->block(rank, own_);
      own_->phase.wait(open, std::memory_order_acquire);
    }
    if (own_->current() == Phase::kAborted) throw run_->abort_error(rank);
    run_->finished_call(rank, *own_, group_.group_rank, wall_now_ns());
    own_.reset();
    return buffers_->remove(group_.group_rank, round_++)->take();
  }

 private:
  std::shared_ptr<Run> run_;
  Group group_;
  std::shared_ptr<PeerBuffers> buffers_;
  std::vector<Channel*> finished_;  // per owner
  NothingToMove mover_;
  ExchangePtr own_;
  int64_t round_ = 0;
};

}  // namespace

void PeerBuffer::put(const at::Tensor& rows, const PutNote& note) {
  const auto bytes = static_cast<int64_t>(rows.nbytes());
  {
    const std::lock_guard lock(notes_mutex_);
    notes_.push_back(note);
    if (bytes == 0) return;
    RANKLAB_CHECK(width_ == 0 || width_ == rows.size(1), ErrorKind::kCommunication, .where = "peer memory",
                  .what = "rows of one round differ in width",
                  .got = std::to_string(width_) + " and " + std::to_string(rows.size(1)) + " bytes");
    width_ = rows.size(1);
  }
  const int64_t slot = next_.fetch_add(bytes);
  for (;;) {
    {
      const std::shared_lock lock(memory_mutex_);
      if (slot + bytes <= capacity_) {
        std::memcpy(memory_.get() + slot, rows.const_data_ptr<uint8_t>(), static_cast<size_t>(bytes));
        return;
      }
    }
    grow(slot + bytes);
  }
}

void PeerBuffer::grow(int64_t bytes) {
  const std::lock_guard lock(memory_mutex_);
  if (capacity_ >= bytes) return;
  const int64_t larger = std::max({2 * capacity_, bytes, capacity_hint_});
  std::shared_ptr<uint8_t[]> block(new uint8_t[static_cast<size_t>(larger)]);
  if (capacity_ > 0) std::memcpy(block.get(), memory_.get(), static_cast<size_t>(capacity_));
  memory_ = std::move(block);
  capacity_ = larger;
}

Delivery PeerBuffer::take() {
  const std::lock_guard lock(memory_mutex_);
  const int64_t bytes = next_.load();
  if (bytes == 0) return {at::empty({0, 0}, at::kByte), std::move(notes_)};
  const auto keep = [memory = memory_](void*) {};
  return {at::from_blob(memory_.get(), {bytes / width_, width_}, keep, at::kByte), std::move(notes_)};
}

std::shared_ptr<PeerBuffer> PeerBuffers::buffer(int owner, int64_t round) {
  Owner& of = owners_[static_cast<size_t>(owner)];
  const std::lock_guard lock(of.mutex);
  std::shared_ptr<PeerBuffer>& buffer = of.rounds[round];
  if (!buffer) buffer = std::make_shared<PeerBuffer>(of.capacity_bytes);
  return buffer;
}

std::shared_ptr<PeerBuffer> PeerBuffers::remove(int owner, int64_t round) {
  std::shared_ptr<PeerBuffer> taken = buffer(owner, round);
  Owner& of = owners_[static_cast<size_t>(owner)];
  const std::lock_guard lock(of.mutex);
  of.rounds.erase(round);
  of.capacity_bytes = std::max(of.capacity_bytes, taken->bytes());
  return taken;
}

PeerMemoryPtr make_peer_memory(std::shared_ptr<Run> run, const Group& group, const std::string& label,
                               std::shared_ptr<PeerBuffers> buffers) {
  return std::make_shared<ThreadPeerMemory>(std::move(run), group, label, std::move(buffers));
}

}  // namespace ranklab::cpu_sim
