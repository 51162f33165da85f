// Handling of Ctrl-C (SIGINT) and SIGTERM in a run, of SIGHUP (its terminal is gone), which counts as SIGTERM, and of
// SIGPIPE (whoever read its output is gone, as behind `| head`), the last two unless they were ignored from the start
// (nohup): the first one requests a stop after the step, keeping log and
// trace; if that takes too long (a long step, the start of a large model) the process exits, with files intact since
// each line is flushed and each trace is renamed into place. A second one, more than 0.3 s later, ends the process at
// once. A prompt may take over Ctrl-C (it pauses the run) and decide when it is meant for the run. Thread rule:
// watch_interrupts() once, before ranks start; the rest from any thread.
#pragma once
#include <chrono>
#include <functional>
#include <string>

namespace ranklab {

void watch_interrupts();
// From now on SIGINT writes a byte to this pipe and does nothing else; -1: as before.
void take_ctrl_c(int pipe_fd);
// Acts like a SIGINT that no prompt has taken over.
void interrupt_run();
// Called before the process exits in the middle of its work, from its own thread, for at most 0.3 s: notifies
// whoever waits for this process elsewhere. Empty: nobody.
void tell_before_leaving(std::function<void(const std::string& why)> tell);
// How long the first signal waits for work in progress; 1.2 s by default: a checkpoint takes longer.
void give_interrupts(std::chrono::milliseconds patience);
bool interrupt_requested();
bool reader_is_gone();      // the run ends because nobody reads its output: what is printed is no loss
int interrupt_exit_code();  // 130; 141 for SIGPIPE; 143 for SIGTERM, and where it was another process that got a signal

}  // namespace ranklab
