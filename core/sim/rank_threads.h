// What a process must do before it starts rank threads. Thread rule: the thread that starts them.
#pragma once
#include <ATen/Parallel.h>
#include <unistd.h>

namespace ranklab {

inline const pid_t started_process = ::getpid();  // set before main(); differs from getpid() in a forked process

// In a forked process (a lesson's exercise, a planner's worker), LibTorch recreates its thread pool at the first call
// of set_num_threads(), which every rank makes; two concurrent first calls break it (an internal assertion). So the
// first call is made here, by a single thread. In other processes this does nothing.
inline void make_thread_pool() {
  if (::getpid() != started_process) at::set_num_threads(at::get_num_threads());
}

}  // namespace ranklab
