// The parts of a stage script, one file each. Each function fills its members of the script; stage_script() calls them
// in this order. Thread rule: pure.
#pragma once
#include <map>
#include <string>

#include "viz/model/stage/script.h"

namespace ranklab::viz {

// Stores each text once.
class StageTexts {
 public:
  explicit StageTexts(std::vector<std::string>& texts) : texts_(texts) { id(""); }
  uint32_t id(const std::string& text) {
    const auto [at, is_new] = ids_.try_emplace(text, static_cast<uint32_t>(texts_.size()));
    if (is_new) texts_.push_back(text);
    return at->second;
  }

 private:
  std::vector<std::string>& texts_;
  std::map<std::string, uint32_t> ids_;
};

// Fills the rooms with their places, and the nodes.
void place_rooms(const TraceStore& store, StageScript& script);
// The curve from one room to another.
StagePath path_between(const StageScript& script, size_t from, size_t to);
// Fills actions, modules, waits, microbatches held, and marks.
void fill_rooms(const TraceStore& store, StageScript& script, StageTexts& texts);
// Fills kinds, paths, pairs and flows.
void fill_flows(const TraceStore& store, StageScript& script);
// Fills memory and shards.
void fill_holdings(const TraceStore& store, StageScript& script);
void narrate(const TraceStore& store, StageScript& script);

}  // namespace ranklab::viz
