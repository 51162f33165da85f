// What Ctrl-C (SIGINT) and SIGTERM do to a run: the first one asks it to stop after the step and keep log and trace;
// when that takes too long (a long step, the start of a large model) the process is left, with files whole since each
// line is flushed and each trace is renamed into place. A second one, more than 0.3 s later, ends the process at once.
// A prompt may take Ctrl-C for itself (it pauses the run) and decide when it is meant for the run.
// Thread rule: watch_interrupts() once, before ranks start; the rest from any thread.
#pragma once
#include <chrono>
#include <functional>
#include <string>

namespace ranklab {

void watch_interrupts();
// From now on SIGINT writes a byte to this pipe and does nothing else; -1: as before.
void take_ctrl_c(int pipe_fd);
// As if SIGINT had come and nobody had taken it.
void interrupt_run();
// Called before the process is left in the middle of its work, from a thread of its own, for at most half a second:
// tells who waits for this process elsewhere. Empty: nobody.
void tell_before_leaving(std::function<void(const std::string& why)> tell);
// How long the first signal waits for what is under way; 1.5 s unless told: a checkpoint takes longer.
void give_interrupts(std::chrono::milliseconds patience);
bool interrupt_asked();
int interrupt_exit_code();  // 130, or 143 for SIGTERM

}  // namespace ranklab
