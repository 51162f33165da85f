#include "core/sim/block_pool.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <new>

namespace ranklab {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSmallest = 64 << 10;  // below, malloc's per-thread caches do better
constexpr size_t kPage = 4 << 10;
constexpr size_t kSpare = 256 << 20;

size_t rounded(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

void* map_block(size_t bytes) {
  void* block = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return block == MAP_FAILED ? nullptr : block;
}

// Aligned by hand: what glibc's aligned_alloc cuts off a block is found again by no other aligned_alloc (its bug 14581,
// mended in 2.38), and a training run took 100 KB more at every step. Before the block lies where it begins.
void* take_small(size_t bytes) {
  void* whole = std::malloc(bytes + kAlignment + sizeof(void*));
  if (whole == nullptr) throw std::bad_alloc();
  const auto first = reinterpret_cast<uintptr_t>(whole) + sizeof(void*);
  void** block = reinterpret_cast<void**>((first + kAlignment - 1) / kAlignment * kAlignment);
  block[-1] = whole;
  return block;
}

void give_small(void* block) { std::free(static_cast<void**>(block)[-1]); }

}  // namespace

BlockPool& BlockPool::instance() {
  static auto* pool = new BlockPool;  // never destroyed: tensors of static lifetime give back after main()
  return *pool;
}

void* BlockPool::take(size_t bytes) {
  if (bytes < kSmallest) return take_small(bytes);
  const size_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  std::vector<void*>& blocks = free_[size];
  if (!blocks.empty()) {
    void* block = blocks.back();
    blocks.pop_back();
    free_bytes_ -= size;
    used_bytes_ += size;
    return block;
  }
  if (free_bytes_ > used_bytes_ + kSpare) release_all();  // the sizes have changed: what is held no longer fits
  void* block = map_block(size);
  if (block == nullptr) {
    release_all();
    block = map_block(size);
  }
  if (block == nullptr) throw std::bad_alloc();
  used_bytes_ += size;
  return block;
}

void BlockPool::give(void* block, size_t bytes) {
  if (bytes < kSmallest) return give_small(block);
  const size_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  free_[size].push_back(block);
  free_bytes_ += size;
  used_bytes_ -= size;
}

void BlockPool::release_all() {
  for (auto& [size, blocks] : free_) {
    for (void* block : blocks) ::munmap(block, size);
    blocks.clear();
  }
  free_bytes_ = 0;
}

size_t BlockPool::free_bytes() const {
  const std::lock_guard lock(mutex_);
  return free_bytes_;
}

}  // namespace ranklab
