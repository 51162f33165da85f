// What `ranklab train --dry-run` says: the layout, the batch, and what a rank holds, computed from the numbers alone.
#pragma once
#include <string>

#include "core/runtime/train_config.h"

namespace ranklab {

// Memory counts every weight as split over tp, as check_memory() does (norms are replicated, and small).
std::string dry_run_report(const RunPlan& plan);

}  // namespace ranklab
