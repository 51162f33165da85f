// What `ranklab parity` was asked for. Torch-free. Thread rule: plain data.
#pragma once
#include <string>
#include <vector>

namespace ranklab {

struct ParityRequest {
  std::vector<std::string> against;  // flags of the reference, on top of one rank's settings
  std::vector<std::string> dumps;    // folders: of a run, of its reference, of the reference with perturbed weights
  std::string out;                   // the picture to write
  double allowed = 64;               // epsilons, where no perturbed run tells
  bool audit = false;                // without a reference
  bool types = false;                // without numbers
  bool all = false;                  // every layout of the world
  bool narrow = true;
  bool json = false;
  bool force = false;
};

// Throws kInvalidArgument where options do not go together, or the picture may not be written there.
void check_request(const ParityRequest& request);

}  // namespace ranklab
