// ranklab plan validate: measured runs beside what the planner says of them. Thread rule: main thread.
#pragma once
#include <string>

namespace ranklab {

struct ValidateRequest {
  std::string file;
  std::string only;  // rows whose id, source or GPU contains it
  bool json = false;
  bool flags = false;  // print each row as a command line
};

int run_plan_validate(const ValidateRequest& request);

}  // namespace ranklab
