// The parts of a report. Each function returns the markup inside its section; "" leaves the section out. Thread rule:
// pure.
#pragma once
#include <span>
#include <string>

#include "viz/model/run/run_facts.h"

namespace ranklab::viz {

using Runs = std::span<const RunFacts>;

std::string glance_section(Runs runs);  // glance.cpp
std::string difference_section(Runs runs);
std::string command_section(Runs runs);  // run_sections.cpp
std::string sentinel_section(Runs runs);
std::string settings_section(Runs runs);
std::string machine_section(Runs runs);
std::string curves_section(Runs runs);   // curves_section.cpp
std::string insight_section(Runs runs);  // step_sections.cpp
std::string layout_section(Runs runs);
std::string timeline_section(Runs runs);
std::string traffic_section(Runs runs);
std::string memory_section(Runs runs);  // state_sections.cpp
std::string zero_section(Runs runs);
std::string expert_section(Runs runs);
std::string precision_section(Runs runs);

}  // namespace ranklab::viz
