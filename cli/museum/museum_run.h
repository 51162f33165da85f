// `ranklab museum run`: shows how a bug affects the loss, and what parity reports. Thread rule: main thread.
#pragma once
#include <vector>

#include "core/museum/exhibit.h"

namespace ranklab {

struct MuseumRunOptions {
  bool json = false;
  bool table = false;  // one row per exhibit; otherwise one exhibit in full
};

// RETURNS: the process's exit code: 0 if every bug was found.
int run_exhibits(const std::vector<const Exhibit*>& exhibits, const MuseumRunOptions& options);

}  // namespace ranklab
