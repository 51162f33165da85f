// The options of `ranklab parity`. Torch-free. Thread rule: plain data.
#pragma once
#include <string>
#include <vector>

namespace ranklab {

struct ParityRequest {
  std::vector<std::string> against;  // flags of the reference, which override one rank's settings
  std::vector<std::string> dumps;    // folders: of a run, of its reference, of the reference with perturbed weights
  std::string out;                   // the picture to write
  double allowed = 64;               // in epsilons, if there is no run with perturbed weights to derive it from
  bool audit = false;                // check without a reference
  bool types = false;                // check types only, without computing numbers
  bool all = false;                  // every layout of this world size
  bool narrow = true;
  bool json = false;
  bool force = false;
};

// Throws kInvalidArgument if options contradict each other, or if the picture must not be written there.
void check_request(const ParityRequest& request);

}  // namespace ranklab
