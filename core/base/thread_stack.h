// What another thread of this process is doing: for the message that it is stuck. Thread rule: any thread but the one
// that is asked.
#pragma once
#include <pthread.h>

#include <string>

namespace ranklab {

// "it is in f, called by g, called by h": the innermost eight functions. One whose name the program does not export is
// "module+0x1a2b" (for addr2line). Asks by a signal, SIGRTMIN + 6, and waits for a second: "" when the thread does not
// answer. REQUIRES: the thread is not joined yet.
std::string where_thread_is(pthread_t thread);

// The same to stderr, of a rank whose process leaves without it: "ranklab: rank 1 does not return: it is in f, ...".
void say_where_thread_is(const std::string& who, pthread_t thread);

}  // namespace ranklab
