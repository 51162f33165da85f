// The limits that a shell sets for its programs (ulimit; core/base/process_limit.h): those that would end the process
// by a signal, without a word, are raised where that is allowed, and refused by name where they are too low to start.
// Linux with glibc. Thread rule: before other threads start.
#pragma once
namespace ranklab {

// First in main(). Threads get stacks of 8 MiB whatever `ulimit -s` says; a file that grows past `ulimit -f` is a write
// that fails, and not SIGXFSZ; what nobody catches ends with an error and exit code 3 or 1. (Too little address space,
// `ulimit -v`, is refused before that, since LibTorch would abort while it is loaded.) Throws kEnvironment when the
// stack cannot be made large enough.
void meet_process_limits();

}  // namespace ranklab
