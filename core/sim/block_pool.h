// A caching allocator for tensor memory: a training step requests the same sizes again and again, and eight ranks on a
// few cores rarely peak together, so freed blocks go into one pool that all ranks share. Best fit: the smallest free
// block that is large enough is taken and split; adjacent free blocks are merged. So experts, whose tensors have
// different sizes in every step, reuse memory instead of using fresh pages that the kernel must zero. Small blocks are
// left to malloc. Memory is returned to the system when much of it is free and none of it fits, or an allocation fails.
// Cost: two searches in trees of the free blocks. Thread rule: any thread.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace ranklab {

class BlockPool {
 public:
  static BlockPool& instance();

  // 64-byte aligned, never null; throws kEnvironment. Pass the same `bytes` to give().
  void* take(size_t bytes);
  void give(void* block, size_t bytes);
  size_t free_bytes() const;  // held for reuse

 private:
  char* take_free(size_t size);  // null: none is large enough
  void add_free(char* block, size_t size);
  void remove_free(std::map<char*, size_t>::iterator block);
  void release_all();

  mutable std::mutex mutex_;
  std::map<char*, size_t> free_;  // no two are adjacent
  std::set<std::pair<size_t, char*>> by_size_;
  size_t free_bytes_ = 0;
  size_t used_bytes_ = 0;
};

}  // namespace ranklab
