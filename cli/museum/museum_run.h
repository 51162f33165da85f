// `ranklab museum run`: what the loss shows of a bug, and what parity says. Thread rule: main thread.
#pragma once
#include <vector>

#include "core/museum/exhibit.h"

namespace ranklab {

struct MuseumRunOptions {
  bool json = false;
  bool table = false;  // a row for each; otherwise one exhibit in full
};

// RETURNS: the process's exit code: 0 where every bug was found.
int run_exhibits(const std::vector<const Exhibit*>& exhibits, const MuseumRunOptions& options);

}  // namespace ranklab
