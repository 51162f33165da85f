// One run, or two next to each other, as one HTML file without any network access (its content security policy forbids
// all of it): light and dark, also printed, below a megabyte. If the run lacks the data for a part, the part says so
// and names the flag that records them. No text of a run becomes markup or script. To add a part, add a function and a
// row in report_page.cpp. Thread rule: pure.
#pragma once
#include <span>
#include <string>

#include "viz/model/run/run_facts.h"

namespace ranklab::viz {

// REQUIRES: one or two runs.
std::string report_page(std::span<const RunFacts> runs);

// Only the losses over the steps, as an SVG file that is light or dark like its viewer; "" if no run has any. REQUIRES:
// one or two runs.
std::string loss_picture(std::span<const RunFacts> runs);

}  // namespace ranklab::viz
