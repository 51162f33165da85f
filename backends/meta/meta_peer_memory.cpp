#include "backends/meta/meta_peer_memory.h"

#include <ATen/ops/empty.h>

#include <memory>
#include <utility>

#include "core/sim/memory_scope.h"

namespace ranklab::meta {
namespace {

class MetaPeerMemory final : public PeerMemory {
 public:
  explicit MetaPeerMemory(Group group) : group_(std::move(group)) {}
  const Group& group() const override { return group_; }

  void put(int peer, const at::Tensor& rows, PutNote note) override {
    note.source = peer;
    note.bytes = static_cast<int64_t>(rows.nbytes());
    rows_ += rows.size(0);
    width_ = rows.size(1);
    notes_.push_back(note);
  }
  void finish(std::source_location) override {}

  Delivery take() override {
    // Peer buffers are not charged to any rank (backends/cpu_sim/peer_buffers.h).
    const std::shared_ptr<MemoryBook> book = thread_memory_book();
    set_thread_memory_book(nullptr);
    Delivery out{at::empty({rows_, width_}, at::TensorOptions(at::kByte).device(at::kMeta)), std::move(notes_)};
    set_thread_memory_book(book);
    rows_ = width_ = 0;
    notes_.clear();
    return out;
  }

 private:
  Group group_;
  int64_t rows_ = 0, width_ = 0;  // in this round
  std::vector<PutNote> notes_;
};

}  // namespace

PeerMemoryPtr make_meta_peer_memory(const Group& group) { return std::make_shared<MetaPeerMemory>(group); }

}  // namespace ranklab::meta
