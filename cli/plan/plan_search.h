// `ranklab plan search`: the fastest layouts of a model on a world, and where another layout loses time. Thread rule:
// main thread.
#pragma once
#include <string>
#include <vector>

#include "cli/config/config_options.h"

namespace ranklab {

struct SearchRequest {
  std::string why;               // flags of a layout to compare the best with; empty: none
  std::vector<std::string> out;  // CSV files of all rows, or pictures of their front
  std::string theme = "light";   // for pictures
  int measure = 0;               // how many of the best to run
  int plans = 48;
  double memory_share = 0.9;
  bool json = false, force = false;
};

// The options' settings, adapted for planning: the data are generated sentences unless the options name data.
TrainConfig planned_config(const ConfigOptions& options);
int run_plan_search(const ConfigOptions& options, const SearchRequest& request);

}  // namespace ranklab
