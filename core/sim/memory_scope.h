// Tracks who owns each byte: a CPU allocator that books every tensor's storage under the rank and category of the
// thread that allocated it, until it is freed (by any thread). Categories are set at allocation, never inferred
// afterwards. A device's allocator is LibTorch's own and reports its blocks. Cost: a 64-byte header (on a device, a
// table entry) and a few atomic additions per allocation. Thread rule: books are atomic; scopes are per thread.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/vocabulary.h"
#include "core/sim/category_bytes.h"

namespace ranklab {

// Live bytes per category, and the peaks of each category and of the total. The book of a rank whose tensors are
// elsewhere (on a device, or as shapes) ignores those in host memory.
class MemoryBook {
 public:
  explicit MemoryBook(bool books_host = true) : books_host_(books_host) {}
  bool books_host() const { return books_host_; }
  int64_t bytes(MemoryCategory category) const {
    return bytes_[static_cast<size_t>(category)].load(std::memory_order_relaxed);
  }
  CategoryBytes bytes() const;
  int64_t total_bytes() const { return total_.load(std::memory_order_relaxed); }
  int64_t peak_bytes() const { return peak_.load(std::memory_order_relaxed); }
  int64_t peak_bytes(MemoryCategory category) const {
    return peaks_[static_cast<size_t>(category)].load(std::memory_order_relaxed);
  }
  // Bytes of a category when the total was highest. Exact where only the rank's own thread allocates.
  int64_t bytes_at_peak(MemoryCategory category) const {
    return at_peak_[static_cast<size_t>(category)].load(std::memory_order_relaxed);
  }
  void add(MemoryCategory category, int64_t bytes);
  void add(const CategoryBytes& bytes);
  // What was held at the highest total since the previous call; for a single caller.
  CategoryBytes take_highest();
  // Peaks are measured from now on.
  void reset_peaks();

  // The categories at the peak of the total, and the peak of each category.
  struct Peaks {
    CategoryBytes at_peak{}, highest{};
    // The peaks without `base`, and the peaks with `base` added.
    Peaks above(const CategoryBytes& base) const { return {minus(at_peak, base), minus(highest, base)}; }
    Peaks on(const CategoryBytes& base) const { return {plus(at_peak, base), plus(highest, base)}; }
  };
  Peaks peaks() const;
  // Raises the peaks as if the rank had also held these.
  void raise_peaks(const Peaks& seen);

 private:
  using Counts = std::array<std::atomic<int64_t>, static_cast<size_t>(MemoryCategory::kCount)>;
  void note_bytes(Counts& to);
  const bool books_host_;
  Counts bytes_{}, peaks_{}, at_peak_{}, at_highest_{};
  std::atomic<int64_t> total_{0}, peak_{0}, highest_{0};
};

// Uses the booking allocator for every CPU tensor made from now on. Idempotent.
void install_booking_allocator();

// Books a device's memory in the same way: the block belongs to this thread until any thread frees it.
void device_block_taken(const void* block, int64_t bytes);
void device_block_given(const void* block);

// This thread's tensors are booked in `book` from now on; null stops booking.
void set_thread_memory_book(std::shared_ptr<MemoryBook> book);
std::shared_ptr<MemoryBook> thread_memory_book();
MemoryCategory thread_memory_category();  // the category of this thread's next tensor

// While this object is alive, this thread's new tensors are not booked.
class UnbookedScope {
 public:
  UnbookedScope() { set_thread_memory_book(nullptr); }
  ~UnbookedScope() { set_thread_memory_book(std::move(book_)); }
  UnbookedScope(const UnbookedScope&) = delete;
  UnbookedScope& operator=(const UnbookedScope&) = delete;

 private:
  std::shared_ptr<MemoryBook> book_ = thread_memory_book();
};

// While this object is alive, this thread's new tensors in host memory are booked only if they outlive it. For matrices
// that a CPU's library packs and for the tiles of its attention, which would take no memory on the simulated GPU.
// REQUIRES: only one at a time, and memory freed during its lifetime is freed by this thread.
class ScratchScope {
 public:
  ScratchScope();
  ~ScratchScope();
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;

 private:
  std::vector<void*> alive_;
};

template <typename Make>
auto without_scratch(const Make& make) {
  const ScratchScope scratch;
  return make();
}

// While this object is alive, this thread's new tensors belong to `category` (outside any scope: activations).
class MemoryScope {
 public:
  explicit MemoryScope(MemoryCategory category);
  ~MemoryScope();
  MemoryScope(const MemoryScope&) = delete;
  MemoryScope& operator=(const MemoryScope&) = delete;

 private:
  MemoryCategory previous_;
};

}  // namespace ranklab
