// Holds an exhibit of the museum to one rank's training: whether parity finds the bug, and names its module and axis.
// Thread rule: main thread.
#pragma once
#include <string>

#include "core/museum/exhibit.h"
#include "core/parity/microscope.h"
#include "core/runtime/hooks.h"

namespace ranklab {

struct ExhibitFinding {
  ParityResult result;
  bool module = false, axis = false;  // those of the exhibit
  std::string axis_text() const { return result.axis().empty() ? "none" : result.axis(); }
};

// A training to its end, without a trace.
TrainResult trained(TrainConfig config, const MakeParityWorld& make_world);

// `folder`: for the checkpoint of a training that comes before; it need not exist.
ExhibitFinding examine_exhibit(const Exhibit& exhibit, const MakeParityWorld& make_world, const std::string& folder,
                               ParityOptions options = {.steps = 3});
// The same without a reference.
ExhibitFinding audit_exhibit(const Exhibit& exhibit, const MakeParityWorld& make_world, const std::string& folder,
                             ParityOptions options = {.steps = 3});

}  // namespace ranklab
