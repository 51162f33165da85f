// Finds out what another thread of this process is doing, for the message that it is stuck. Thread rule: call from any
// thread except the one asked about.
#pragma once
#include <pthread.h>

#include <string>

namespace ranklab {

// The innermost eight functions: "it is in f, called by g, called by h". A function whose name the program does not
// export appears as "module+0x1a2b" (for addr2line). The thread is asked with a signal, SIGRTMIN + 6, and has one
// second to answer: "" when it does not. REQUIRES: the thread has not been joined yet.
std::string where_thread_is(pthread_t thread);

// Writes the same to stderr for a rank whose process exits without it: "ranklab: rank 1 does not return: it is in f,
// ...".
void report_where_thread_is(const std::string& who, pthread_t thread);

}  // namespace ranklab
