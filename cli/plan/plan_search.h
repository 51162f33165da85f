// ranklab plan search: the layouts of a model on a world that are fastest, and what another one loses where. Thread
// rule: main thread.
#pragma once
#include <string>

#include "cli/config/config_options.h"

namespace ranklab {

struct SearchRequest {
  std::string why;  // flags of a layout to compare the best with; empty: none
  std::string out;  // a CSV file of all rows; empty: none
  int plans = 48;
  double memory_share = 0.9;
  bool json = false, force = false;
};

int run_plan_search(const ConfigOptions& options, const SearchRequest& request);

}  // namespace ranklab
