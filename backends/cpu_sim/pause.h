// Waits for a word to change: a few yields, since the peer usually needs this core to get there, then sleep (futex).
#pragma once
#include <sched.h>

#include <atomic>
#include <cstdint>

namespace ranklab::cpu_sim {

inline constexpr int kYields = 20;

// Returns true when the word changed while yielding.
inline bool yield_while(const std::atomic<uint32_t>& word, uint32_t value) {
  for (int i = 0; i < kYields; ++i) {
    if (word.load(std::memory_order_acquire) != value) return true;
    sched_yield();
  }
  return word.load(std::memory_order_acquire) != value;
}

inline void pause_while(const std::atomic<uint32_t>& word, uint32_t value) {
  if (!yield_while(word, value)) word.wait(value, std::memory_order_acquire);
}

// Use before notify_*(): libstdc++ checks for waiters by a plain load, which the processor may execute before others
// see an earlier release store; a waiter that starts in between would sleep forever. With this store, the new value is
// seen first.
inline void store_for_waiters(std::atomic<uint32_t>& word, uint32_t value) {
  word.store(value, std::memory_order_seq_cst);
}
inline void notify_waiters(std::atomic<uint32_t>& word, uint32_t value) {
  store_for_waiters(word, value);
  word.notify_all();
}

}  // namespace ranklab::cpu_sim
