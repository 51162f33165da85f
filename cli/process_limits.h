// The limits that a shell sets for its programs (ulimit; core/base/process_limit.h): those that would end the process
// with a signal and no message are raised if allowed, and refused by name if they are too low to start. Linux with
// glibc. Thread rule: before other threads start.
#pragma once
namespace ranklab {

// Call first in main(). Threads get stacks of 8 MiB whatever `ulimit -s` is; exceeding `ulimit -f` makes a write fail
// instead of raising SIGXFSZ; an uncaught exception ends with an error and exit code 3 or 1. (Too little address space,
// `ulimit -v`, is refused before that, since LibTorch would abort while it is loaded.) Throws kEnvironment when the
// stack cannot be made large enough. Standard streams that were closed get /dev/null, so that no file takes their
// place. Only the program calls it: a main of one's own on the libraries, as those of examples/, keeps what it got.
void meet_process_limits();

}  // namespace ranklab
