// `ranklab trace diff A B [--fail-over PERCENT] [--json]`: shows what became slower, faster or larger.
#pragma once
#include <string>

namespace ranklab {

struct TraceDiffOptions {
  std::string a, b;
  double fail_over = -1;  // percent; below 0: never fail
  bool json = false;
  int rows = 15;
};

// RETURNS: the exit code; that of a failed check if makespan, a step or a memory peak differs by more than fail_over.
int trace_diff(const TraceDiffOptions& options);

}  // namespace ranklab
