// The texts of all ranks, by rank. Cost: two all_gathers, of the longest text from each. Thread rule: collective.
#pragma once
#include <string>
#include <vector>

#include "core/comm/communicator.h"

namespace ranklab {

std::vector<std::string> gather_texts(const std::string& mine, Communicator& world, c10::Device device);

}  // namespace ranklab
