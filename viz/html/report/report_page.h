// A run, or two beside each other, as one HTML file without any network (its content security policy forbids all of
// it): light and dark, also on paper, below a megabyte. A part whose data the run lacks says so, with the flag that
// records it. No text of a run becomes markup or script. A part is a function and a row in report_page.cpp. Thread
// rule: pure.
#pragma once
#include <span>
#include <string>

#include "viz/model/run/run_facts.h"

namespace ranklab::viz {

// REQUIRES: one or two runs.
std::string report_page(std::span<const RunFacts> runs);

// Their losses over the steps alone, as an SVG file, light or dark as its viewer is; "" where no run has any.
// REQUIRES: one or two runs.
std::string loss_picture(std::span<const RunFacts> runs);

}  // namespace ranklab::viz
