#include "core/sim/block_pool.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>

#include "core/base/exhausted.h"

namespace ranklab {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSmallest = 64 << 10;  // smaller blocks are better served by malloc's per-thread caches
constexpr size_t kPage = 4 << 10;
constexpr size_t kSpare = 128 << 20;

size_t rounded(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

// Where address space is limited (ulimit -v), this much is kept free besides tensors. Some libraries that allocate a
// little memory in between, such as oneDNN for the code it generates, crash when there is none.
constexpr size_t kHeadroom = 16 << 20;

char* map(size_t bytes, int protection) {
  void* block = ::mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return block == MAP_FAILED ? nullptr : static_cast<char*>(block);
}

bool is_limited() {
  static const bool limited = [] {
    rlimit limit{};
    return ::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  }();
  return limited;
}

char* map_block(size_t bytes) {
  char* block = map(bytes, PROT_READ | PROT_WRITE);
  if (block == nullptr || !is_limited()) return block;
  char* headroom = map(kHeadroom, PROT_NONE);
  if (headroom == nullptr) ::munmap(block, bytes);
  if (headroom != nullptr) ::munmap(headroom, kHeadroom);
  return headroom == nullptr ? nullptr : block;
}

// Aligned manually, because what glibc's aligned_alloc cuts off a block is never reused by another aligned_alloc (its
// bug 14581, fixed in 2.38): 100 KB per training step. The word before the block points to its allocation.
void* take_small(size_t bytes) {
  void* whole = std::malloc(bytes + kAlignment + sizeof(void*));
  if (whole == nullptr) throw memory_exhausted(bytes);
  const auto first = reinterpret_cast<uintptr_t>(whole) + sizeof(void*);
  void** block = reinterpret_cast<void**>((first + kAlignment - 1) / kAlignment * kAlignment);
  block[-1] = whole;
  return block;
}

void give_small(void* block) { std::free(static_cast<void**>(block)[-1]); }

}  // namespace

BlockPool& BlockPool::instance() {
  static auto* pool = new BlockPool;  // never destroyed: tensors of static lifetime are freed after main()
  return *pool;
}

void* BlockPool::take(size_t bytes) {
  if (bytes < kSmallest) return take_small(bytes);
  const size_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  char* block = take_free(size);
  if (block == nullptr && free_bytes_ > used_bytes_ / 2 + kSpare) release_all();  // the free blocks are too small
  if (block == nullptr) block = map_block(size);
  if (block == nullptr) {
    release_all();
    block = map_block(size);
  }
  if (block == nullptr) throw memory_exhausted(bytes);
  used_bytes_ += size;
  return block;
}

void BlockPool::give(void* block, size_t bytes) {
  if (bytes < kSmallest) return give_small(block);
  const size_t size = rounded(bytes);
  const std::lock_guard lock(mutex_);
  used_bytes_ -= size;
  auto* begin = static_cast<char*>(block);
  size_t merged = size;
  if (const auto after = free_.find(begin + size); after != free_.end()) {
    merged += after->second;
    remove_free(after);
  }
  if (auto before = free_.lower_bound(begin); before != free_.begin()) {
    --before;
    if (before->first + before->second == begin) {
      begin = before->first;
      merged += before->second;
      remove_free(before);
    }
  }
  add_free(begin, merged);
}

char* BlockPool::take_free(size_t size) {
  const auto found = by_size_.lower_bound({size, nullptr});
  if (found == by_size_.end()) return nullptr;
  const auto [length, block] = *found;
  remove_free(free_.find(block));
  if (length > size) add_free(block + size, length - size);
  return block;
}

void BlockPool::add_free(char* block, size_t size) {
  free_.emplace(block, size);
  by_size_.emplace(size, block);
  free_bytes_ += size;
}

void BlockPool::remove_free(std::map<char*, size_t>::iterator block) {
  free_bytes_ -= block->second;
  by_size_.erase({block->second, block->first});
  free_.erase(block);
}

void BlockPool::release_all() {
  for (const auto& [block, size] : free_) ::munmap(block, size);
  free_.clear();
  by_size_.clear();
  free_bytes_ = 0;
}

size_t BlockPool::free_bytes() const {
  const std::lock_guard lock(mutex_);
  return free_bytes_;
}

}  // namespace ranklab
