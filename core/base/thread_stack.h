// What another thread of this process is doing: for the message that it is stuck.
#pragma once
#include <pthread.h>

#include <string>
#include <vector>

namespace ranklab {

// Names of the functions that the thread is in, innermost first, at most `count` of them; a function whose name the
// program does not export is "module+0x1a2b" (for addr2line). Asks by a signal, SIGRTMIN + 6, and waits for a second:
// empty when the thread does not answer. REQUIRES: the thread is not joined yet. Thread rule: any thread, one at a
// time.
std::vector<std::string> thread_stack(pthread_t thread, size_t count);

// "it is in f, called by g, called by h": the innermost eight; "" when the thread does not answer.
std::string where_thread_is(pthread_t thread);

}  // namespace ranklab
