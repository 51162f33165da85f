// Handles Ctrl-C (SIGINT) and SIGTERM in a run, SIGHUP (its terminal is gone), which counts as SIGTERM, and SIGPIPE
// (the reader of its output is gone, as with `| head`); the last two unless they were ignored from the start (nohup).
// The first signal requests a stop after the current step, which keeps log and trace. If that takes too long (a long
// step, the start of a large model), the process exits; files stay intact, since each line is flushed and each trace is
// renamed into place. A second signal, more than 0.3 s later, ends the process at once. A prompt may take over Ctrl-C
// (it pauses the run) and decide when it is meant for the run. Thread rule: watch_interrupts() once, before ranks
// start; the rest from any thread.
#pragma once
#include <chrono>
#include <functional>
#include <string>

#include "core/base/error.h"

namespace ranklab {

// For commands that do not watch: a signal ends the process at once, but first removes what it has begun and not
// finished (core/base/files/unfinished_path.h).
void leave_nothing_unfinished();
void watch_interrupts();
// From now on SIGINT only writes a byte to this pipe; -1 restores the normal handling.
void take_ctrl_c(int pipe_fd);
// Acts like a SIGINT that no prompt has taken over.
void interrupt_run();
// `tell` is called before the process exits in the middle of its work, on a thread of its own, for at most 0.3 s, to
// notify whoever waits elsewhere for this process. Pass an empty function to notify nobody.
void notify_before_exit(std::function<void(const std::string& why)> tell);
// Sets how long work in progress may continue after the first signal: 1.2 s by default; a checkpoint takes longer.
void give_interrupts(std::chrono::milliseconds patience);
bool interrupt_requested();
// For work of which nothing is kept: throws kInterrupted once a stop is requested.
void stop_if_interrupted();
// Whether a signal, of this process or of another one's, ended the run, and `error` is only how its ranks left: they
// stopped, or lost a peer that did. Any other error has a cause of its own, above all a checkpoint that could not be
// written.
bool is_caused_by_interrupt(const Error& error);
// Exits at once if it is, without a message. For a process whose rank is in a long operation and does not return.
void exit_if_caused_by_interrupt(const Error& error);
bool reader_is_gone();      // the run ends because nobody reads its output, so what it prints is not a loss
int interrupt_exit_code();  // 130; 141 for SIGPIPE; 143 for SIGTERM, or if another process got the signal

}  // namespace ranklab
