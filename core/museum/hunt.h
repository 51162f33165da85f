// Hunts: bugs of the museum under a number instead of a name, for who wants to find them. `--inject hunt-7` switches
// one on; the answer is the module of the first wrong tensor and the mesh axis. As many hunts as exhibits, in an order
// that tells nothing; each trains from a seed of its own. Torch-free. Thread rule: pure functions.
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
// Throws kInvalidArgument if there is none of the number.
Hunt hunt_numbered(int number);

// The command that tells about the first bug of `names`, as --inject has them: "ranklab museum show norm-unreduced", of
// a hunt "ranklab lesson hunt 7", which does not say what it is. REQUIRES: bugs_named(names) does not throw.
std::string story_command(const std::string& names);

struct HuntGrade {
  bool module = false, axis = false;
  bool passed() const { return module && axis; }
};
// `module`: a module, a parameter or "grad_norm"; `axis`: "tp", ... or "none". Throws kInvalidArgument for a pattern
// and for an axis that there is not.
HuntGrade grade(const Hunt& hunt, const std::string& module, const std::string& axis);

}  // namespace ranklab
