// The limits that a shell sets for its programs (ulimit; core/base/process_limit.h). Limits that would end the process
// with a signal and no message are raised if that is allowed; if one is too low to start, an error names it. Linux with
// glibc. Thread rule: before other threads start.
#pragma once
namespace ranklab {

// Call first in main(). Threads get stacks of 8 MiB whatever `ulimit -s` is; exceeding `ulimit -f` makes a write fail
// instead of raising SIGXFSZ; files may be opened as far as the hard `ulimit -n` allows; an uncaught exception ends
// with an error and exit code 3 or 1. (Too little address space, `ulimit -v`, is rejected before that, since LibTorch
// would abort while it is loaded.) Throws kEnvironment if the stack cannot be made large enough. Standard streams that
// were closed are opened on /dev/null, so that no other file takes their descriptors. Only the program calls this: a
// main() of a user on the libraries, as in examples/, keeps the limits it was started with.
void meet_process_limits();

}  // namespace ranklab
