// The output of `ranklab train --dry-run`: the layout, the batch, and a rank's memory, communication and time per step.
// It is computed from the configuration alone (core/plan), so it also works for worlds that this machine could never
// hold.
#pragma once
#include <string>

#include "cli/common/style.h"
#include "core/config/train_config.h"
#include "core/plan/step_record.h"

namespace ranklab {

// `step`: the recorded step of the plan. `absent_data`: why this machine could not open the data that the run names, if
// so.
std::string dry_run_text(const RunPlan& plan, const StepRecord& step, const Style& style,
                         const std::string& absent_data = {});
std::string dry_run_json(const RunPlan& plan, const StepRecord& step, const std::string& absent_data = {});

}  // namespace ranklab
