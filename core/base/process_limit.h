// The limits that a shell sets for its programs (ulimit), raised as far as this process may. Thread rule: any thread.
#pragma once
#include <sys/resource.h>

#include <string>

namespace ranklab {

// Raises RLIMIT_STACK, RLIMIT_NOFILE, ... to `wanted`, as far as the hard limit allows. RETURNS: the limit afterwards.
rlim_t raise_limit(int resource, rlim_t wanted);

// Raises `ulimit -n` as far as allowed, to 65536: a checkpoint of a large run has more files than the usual 1024.
// RETURNS: the limit afterwards.
rlim_t raise_descriptor_limit();

// Raises `ulimit -n` as far as allowed. Throws kEnvironment when the result is still less than `count`.
void require_descriptors(int count, const std::string& where, const std::string& what_for);

}  // namespace ranklab
