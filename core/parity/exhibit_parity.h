// Compares a training run that has a bug of the museum (an exhibit) with a run on one rank: does parity find the bug,
// and does it name the right module and axis? Thread rule: main thread.
#pragma once
#include <string>

#include "core/museum/exhibit.h"
#include "core/parity/microscope.h"
#include "core/runtime/hooks.h"

namespace ranklab {

struct ExhibitFinding {
  ParityResult result;
  bool module = false, axis = false;  // whether the module and the axis that parity named are the exhibit's
  std::string axis_text() const { return result.axis().empty() ? "none" : result.axis(); }
};

// Runs a training to its end, without a trace.
TrainResult trained(TrainConfig config, const MakeParityWorld& make_world);

// `folder`: for the checkpoint of the training run that comes first, if there is one; it need not exist.
ExhibitFinding examine_exhibit(const Exhibit& exhibit, const MakeParityWorld& make_world, const std::string& folder,
                               ParityOptions options = {.steps = 3});
// Like examine_exhibit(), but without a reference: the run is audited.
ExhibitFinding audit_exhibit(const Exhibit& exhibit, const MakeParityWorld& make_world, const std::string& folder,
                             ParityOptions options = {.steps = 3});

}  // namespace ranklab
