// The sentinels of a run that fired, from sentinels.jsonl: each with its first and last step, how often it fired, and
// its lowest and highest value. Cost: O(bytes of the file); memory for at most 300 of them. Thread rule: pure, except
// for the file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ranklab::viz {

struct FiredSentinel {
  std::string name, tag;  // "loss_spike", "Health/loss_spike_ratio"
  int64_t first_step = 0, last_step = 0, times = 0;
  double first_value = 0, lowest = 0, highest = 0;
  std::string bounds, action;  // "above 3", "warn"
  bool stops = false;          // a value was beyond the stop bounds
};

struct FiredSentinels {
  bool watched = false;              // the run had sentinels
  int64_t steps = 0;                 // number of steps in which they measured something
  std::vector<FiredSentinel> fired;  // sorted by first step
  bool more = false;                 // more sentinels fired than are listed
  std::string problem = {};          // where reading stopped early
};

// If the file is missing, the run was not watched. Throws kIo if it cannot be opened.
FiredSentinels read_fired_sentinels(const std::string& path);

}  // namespace ranklab::viz
