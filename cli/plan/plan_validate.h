// `ranklab plan validate`: compares measured runs with the planner's predictions. Thread rule: main thread.
#pragma once
#include <string>

namespace ranklab {

struct ValidateRequest {
  std::string file;
  std::string only;  // only rows whose id, source or GPU contains this text
  bool json = false;
  bool flags = false;  // print each row as a command line
};

int run_plan_validate(const ValidateRequest& request);

}  // namespace ranklab
