// Hunts: the museum's bugs under a number instead of a name, for readers who want to find them on their own. `--inject
// hunt-7` switches one on; the answer is the module of the first wrong tensor and the mesh axis. There are as many
// hunts as exhibits, in an order that gives nothing away, and each trains from its own seed. Torch-free. Thread rule:
// pure functions.
#pragma once
#include <string>

#include "core/museum/exhibit.h"

namespace ranklab {

struct Hunt {
  int number = 1;
  const Exhibit* exhibit = nullptr;

  std::string name() const { return "hunt-" + std::to_string(number); }  // for --inject
  int seed() const { return 1000 + number; }                             // for --seed
};

int hunt_count();
// Throws kInvalidArgument if there is no hunt with this number.
Hunt hunt_numbered(int number);

// The command that explains the first bug in `names` (in the syntax of --inject): "ranklab museum show norm-unreduced",
// or for a hunt "ranklab lesson hunt 7", which does not reveal the bug. REQUIRES: bugs_named(names) does not throw.
std::string story_command(const std::string& names);

struct HuntGrade {
  bool module = false, axis = false;
  bool passed() const { return module && axis; }
};
// `module`: a module, a parameter or "grad_norm"; `axis`: "tp", ... or "none". Throws kInvalidArgument if `module` is a
// pattern, or if there is no such axis.
HuntGrade grade(const Hunt& hunt, const std::string& module, const std::string& axis);

}  // namespace ranklab
