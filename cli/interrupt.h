// What Ctrl-C (SIGINT) and SIGTERM do to a run: the first one asks it to stop after the step and keep log and trace;
// when that takes too long (a long step, the start of a large model) the process is left, with files whole since each
// line is flushed and each trace is renamed into place. A second one, more than 0.3 s later, ends the process at once.
// Thread rule: watch_interrupts() once, before ranks start; the rest from any thread.
#pragma once

namespace ranklab {

void watch_interrupts();
bool interrupt_asked();
int interrupt_exit_code();  // 130, or 143 for SIGTERM

}  // namespace ranklab
