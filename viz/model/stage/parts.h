// The parts that a stage script is made of, one file each. Each fills its members of the script; the order is that of
// stage_script(). Thread rule: pure.
#pragma once
#include <map>
#include <string>

#include "viz/model/stage/script.h"

namespace ranklab::viz {

// Each text once.
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

// Rooms with their places, nodes.
void place_rooms(const TraceStore& store, StageScript& script);
// The way from one room to another.
StagePath path_between(const StageScript& script, size_t from, size_t to);
// Actions, modules, waits, microbatches held, marks.
void fill_rooms(const TraceStore& store, StageScript& script, StageTexts& texts);
// Kinds, paths, pairs, flows.
void fill_flows(const TraceStore& store, StageScript& script);
// Memory and shards.
void fill_holdings(const TraceStore& store, StageScript& script);
void narrate(const TraceStore& store, StageScript& script);

}  // namespace ranklab::viz
