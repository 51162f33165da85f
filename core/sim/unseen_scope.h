// While alive, what this thread computes shows on no clock and in no book of memory, and autograd does not follow it:
// for those who look at a run's tensors. Thread rule: its thread.
#pragma once
#include <ATen/core/grad_mode.h>

#include <memory>

#include "core/sim/memory_scope.h"
#include "core/sim/op_observer.h"

namespace ranklab {

class UnseenScope {
 public:
  UnseenScope() { set_thread_memory_book(nullptr); }
  ~UnseenScope() { set_thread_memory_book(book_); }
  UnseenScope(const UnseenScope&) = delete;
  UnseenScope& operator=(const UnseenScope&) = delete;

 private:
  NoCostScope free_;
  at::NoGradGuard no_grad_;
  std::shared_ptr<MemoryBook> book_ = thread_memory_book();
};

}  // namespace ranklab
