// For a child between fork() and exec. Programs leave an ignored signal ignored, and a test that was started by nohup
// or as a shell's background job has such; the signals that it sends would be lost.
#pragma once
#include <csignal>

namespace ranklab {

inline void use_default_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, SIG_DFL);
}

}  // namespace ranklab
