#include "tests/cuda/stand_in/device_memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <map>
#include <mutex>

namespace ranklab::stand_in {
namespace {

constexpr size_t kSpace = size_t{256} << 30;  // addresses, not bytes
constexpr size_t kPage = 4096;

struct Block {
  size_t size = 0;
  int device = 0;
};

// Addresses of the GPUs, where nothing is, and as many behind them, where the host has the bytes.
class Memory {
 public:
  Memory() : gpu_(reserved()), host_(gpu_ + kSpace) { ::mprotect(host_, kSpace, PROT_READ | PROT_WRITE); }

  void* allocate(size_t bytes, int device) {
    const size_t size = (bytes + kPage - 1) / kPage * kPage;
    const std::lock_guard lock(mutex_);
    const auto freed = free_.find(size);
    size_t at = used_;
    if (freed != free_.end()) {
      at = freed->second;
      free_.erase(freed);
    } else if (size > kSpace - used_) {
      return nullptr;
    } else {
      used_ += size;
    }
    used_now_[at] = {size, device};
    return gpu_ + at;
  }

  void free(void* address, int idle) {
    const std::lock_guard lock(mutex_);
    const auto found = used_now_.find(static_cast<size_t>(static_cast<char*>(address) - gpu_));
    if (found == used_now_.end()) return;
    given_back_.insert(*found);
    used_now_.erase(found);
    std::erase_if(given_back_, [&](const auto& each) {
      const auto& [at, block] = each;
      if (block.device != idle) return false;
      ::madvise(host_ + at, block.size, MADV_DONTNEED);
      free_.emplace(block.size, at);
      return true;
    });
  }

  void* on_host(void* address) const {
    const auto at = reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(gpu_);
    return at < kSpace ? host_ + at : address;
  }

 private:
  static char* reserved() {
    constexpr int kHow = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    return static_cast<char*>(::mmap(nullptr, 2 * kSpace, PROT_NONE, kHow, -1, 0));
  }

  char *const gpu_, *const host_;
  std::mutex mutex_;
  size_t used_ = 0;
  std::map<size_t, Block> used_now_, given_back_;  // by place; the latter may still be used by its device
  std::multimap<size_t, size_t> free_;             // places by size
};

// Never destroyed: streams may hold work until the process ends.
Memory& memory() {
  static auto* const all = new Memory;
  return *all;
}

}  // namespace

void* allocate_device_memory(size_t bytes, int device) { return memory().allocate(bytes, device); }
void free_device_memory(void* address, int idle) { memory().free(address, idle); }
void* on_host(void* address) { return memory().on_host(address); }

}  // namespace ranklab::stand_in
