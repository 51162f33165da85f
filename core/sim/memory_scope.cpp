#include "core/sim/memory_scope.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <cstring>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "core/base/error.h"
#include "core/sim/block_pool.h"

namespace ranklab {
namespace {

thread_local MemoryCategory t_category = MemoryCategory::kActivations;
thread_local std::shared_ptr<MemoryBook> t_book;
// headers of blocks made in this thread's ScratchScope; null: there is no scope
thread_local std::vector<void*>* t_scratch = nullptr;

// Precedes every block. oneDNN frees by data pointer alone, so the booking must be reachable from it.
struct alignas(64) Header {
  std::shared_ptr<MemoryBook> book;
  MemoryCategory category;
  int64_t bytes;
};
static_assert(sizeof(Header) == 64, "the data behind the header keeps the allocator's 64-byte alignment");

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Blocks are not pooled here, because reuse would hide the errors that a sanitizer detects.
void* take_block(size_t bytes) { return c10::alloc_cpu(bytes); }
void give_block(void* block, size_t) { c10::free_cpu(block); }
#else
void* take_block(size_t bytes) { return BlockPool::instance().take(bytes); }
void give_block(void* block, size_t bytes) { BlockPool::instance().give(block, bytes); }
#endif

void book(Header& header) {
  if (!t_book || !t_book->books_host()) return;
  header.book = t_book;
  t_book->add(header.category, header.bytes);
}

void release(void* data) {
  if (data == nullptr) return;
  Header* header = static_cast<Header*>(data) - 1;
  if (header->book) header->book->add(header->category, -header->bytes);
  if (t_scratch) std::erase(*t_scratch, static_cast<void*>(header));
  const size_t block_bytes = static_cast<size_t>(header->bytes) + sizeof(Header);
  header->~Header();
  give_block(header, block_bytes);
}

bool raise(std::atomic<int64_t>& peak, int64_t value) {
  int64_t seen = peak.load(std::memory_order_relaxed);
  while (value > seen) {
    if (peak.compare_exchange_weak(seen, value, std::memory_order_relaxed)) return true;
  }
  return false;
}

class BookingAllocator : public c10::Allocator {
 public:
  at::DataPtr allocate(size_t bytes) override {
    if (bytes == 0) return {nullptr, nullptr, &release, at::Device(at::kCPU)};
    auto* header = new (take_block(bytes + sizeof(Header))) Header{{}, t_category, static_cast<int64_t>(bytes)};
    if (t_scratch)
      t_scratch->push_back(header);
    else
      book(*header);
    void* data = header + 1;
    return {data, data, &release, at::Device(at::kCPU)};
  }
  at::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* destination, const void* source, size_t bytes) const override {
    std::memcpy(destination, source, bytes);
  }
};

// The bookkeeping of a device's block, which cannot have a header because the host could not read it.
struct DeviceBlock {
  std::shared_ptr<MemoryBook> book;
  MemoryCategory category;
  int64_t bytes;
};

// Keyed by address, and divided into parts so that rank threads rarely contend. Allocators call this with locks held,
// so it takes no other lock.
class DeviceBlocks {
 public:
  void put(const void* block, DeviceBlock what) {
    Part& part = part_of(block);
    const std::lock_guard lock(part.mutex);
    part.blocks.insert_or_assign(block, std::move(what));
  }
  std::optional<DeviceBlock> take(const void* block) {
    Part& part = part_of(block);
    const std::lock_guard lock(part.mutex);
    const auto found = part.blocks.find(block);
    if (found == part.blocks.end()) return std::nullopt;
    std::optional<DeviceBlock> what = std::move(found->second);
    part.blocks.erase(found);
    return what;
  }

 private:
  struct Part {
    std::mutex mutex;
    std::unordered_map<const void*, DeviceBlock> blocks;
  };
  Part& part_of(const void* block) {
    constexpr int kAlignmentBits = 9;  // alignment of GPU blocks
    return parts_[(reinterpret_cast<uintptr_t>(block) >> kAlignmentBits) % parts_.size()];
  }
  std::array<Part, 64> parts_;
};

// Never destroyed: tensors may outlive everything else.
DeviceBlocks& device_blocks() {
  static auto* const blocks = new DeviceBlocks;
  return *blocks;
}

}  // namespace

void device_block_taken(const void* block, int64_t bytes) {
  if (!t_book) return;
  t_book->add(t_category, bytes);
  device_blocks().put(block, {t_book, t_category, bytes});
}

void device_block_given(const void* block) {
  if (const auto known = device_blocks().take(block)) known->book->add(known->category, -known->bytes);
}

void MemoryBook::add(MemoryCategory category, int64_t bytes) {
  const auto at = static_cast<size_t>(category);
  raise(peaks_[at], bytes_[at].fetch_add(bytes, std::memory_order_relaxed) + bytes);
  const int64_t total = total_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (raise(peak_, total)) note_bytes(at_peak_);
  if (raise(highest_, total)) note_bytes(at_highest_);
}

// What is freed comes first, so that the sum on the way is never more than before or after.
void MemoryBook::add(const CategoryBytes& bytes) {
  for (const bool freed : {true, false})
    for (size_t i = 0; i < bytes.size(); ++i)
      if (bytes[i] != 0 && (bytes[i] < 0) == freed) add(static_cast<MemoryCategory>(i), bytes[i]);
}

void MemoryBook::note_bytes(Counts& to) {
  for (size_t i = 0; i < bytes_.size(); ++i)
    to[i].store(bytes_[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
}

CategoryBytes MemoryBook::take_highest() {
  CategoryBytes result;
  for (size_t i = 0; i < result.size(); ++i) result[i] = at_highest_[i].load(std::memory_order_relaxed);
  highest_.store(total_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  note_bytes(at_highest_);
  return result;
}

void MemoryBook::reset_peaks() {
  for (size_t i = 0; i < bytes_.size(); ++i)
    peaks_[i].store(bytes_[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
  peak_.store(total_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  note_bytes(at_peak_);
}

CategoryBytes MemoryBook::bytes() const {
  CategoryBytes result;
  for (size_t i = 0; i < result.size(); ++i) result[i] = bytes_[i].load(std::memory_order_relaxed);
  return result;
}
MemoryBook::Peaks MemoryBook::peaks() const {
  Peaks result;
  for (size_t i = 0; i < bytes_.size(); ++i) {
    result.at_peak[i] = at_peak_[i].load(std::memory_order_relaxed);
    result.highest[i] = peaks_[i].load(std::memory_order_relaxed);
  }
  return result;
}

void MemoryBook::raise_peaks(const Peaks& seen) {
  int64_t total = 0;
  for (size_t i = 0; i < bytes_.size(); ++i) {
    raise(peaks_[i], seen.highest[i]);
    total += seen.at_peak[i];
  }
  if (!raise(peak_, total)) return;
  for (size_t i = 0; i < bytes_.size(); ++i) at_peak_[i].store(seen.at_peak[i], std::memory_order_relaxed);
}

void install_booking_allocator() {
  static std::once_flag once;
  std::call_once(once, [] {
    static BookingAllocator allocator;
    c10::SetCPUAllocator(&allocator, /*priority=*/100);
  });
}

void set_thread_memory_book(std::shared_ptr<MemoryBook> book) { t_book = std::move(book); }
std::shared_ptr<MemoryBook> thread_memory_book() { return t_book; }
MemoryCategory thread_memory_category() { return t_category; }

ScratchScope::ScratchScope() {
  RANKLAB_CHECK(t_scratch == nullptr, ErrorKind::kInternal, .where = "ScratchScope",
                .what = "a scope is within another one of its thread", .want = "one at a time");
  t_scratch = &alive_;
}
ScratchScope::~ScratchScope() {
  t_scratch = nullptr;
  for (void* header : alive_) book(*static_cast<Header*>(header));
}

MemoryScope::MemoryScope(MemoryCategory category) : previous_(t_category) { t_category = category; }
MemoryScope::~MemoryScope() { t_category = previous_; }

}  // namespace ranklab
