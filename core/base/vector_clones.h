// For loops that the compiler vectorizes: a function is compiled both for the baseline and for AVX2, and the version is
// selected at load time. Floating-point contraction is off (RanklabCompiler.cmake), so both versions give the same
// bits. Thread rule: macros.
#pragma once

// Not with sanitizers: the ifunc resolver that selects the version runs before their shadow memory exists.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define RANKLAB_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define RANKLAB_CLONES
#endif
#define RANKLAB_INLINE inline __attribute__((always_inline))
