// Gathers the texts of all ranks, by rank. Cost: two all_gathers, padded to the longest text. Thread rule: collective.
#pragma once
#include <string>
#include <vector>

#include "core/comm/communicator.h"

namespace ranklab {

std::vector<std::string> gather_texts(const std::string& mine, Communicator& world, c10::Device device);

}  // namespace ranklab
