// Memory blocks of tensors, kept for reuse: a training step asks for the same sizes again and again, and eight ranks on
// a few cores are rarely at their peak together, so freed blocks go into one pool that all ranks draw from (last in,
// first out: they are warm in the cache). Small blocks stay with malloc. Sizes are rounded up to an eighth of their
// power of two (at most 12.5 % waste), so that nearby sizes share blocks. Blocks are returned to the system only when
// an allocation fails. Thread rule: any thread.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace ranklab {

class BlockPool {
 public:
  static BlockPool& instance();

  // 64-byte aligned, never null; throws std::bad_alloc. `bytes` must be given back unchanged.
  void* take(size_t bytes);
  void give(void* block, size_t bytes);
  size_t free_bytes() const;  // held for reuse

 private:
  void release_all();
  mutable std::mutex mutex_;
  std::map<size_t, std::vector<void*>> free_;  // by size in whole pages
  size_t free_bytes_ = 0;
  size_t used_bytes_ = 0;
};

}  // namespace ranklab
