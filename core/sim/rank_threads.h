// What a process does before it starts rank threads. Thread rule: the thread that starts them.
#pragma once
#include <ATen/Parallel.h>
#include <unistd.h>

namespace ranklab {

inline const pid_t started_process = ::getpid();  // before main(): a forked process has another

// In a forked process (a lesson's exercise, a planner's worker) LibTorch makes its thread pool anew when
// set_num_threads() first asks for it, as each rank does, and two that ask at once break it (an internal assertion): it
// is asked for here, alone. Elsewhere nothing is done.
inline void make_thread_pool() {
  if (::getpid() != started_process) at::set_num_threads(at::get_num_threads());
}

}  // namespace ranklab
