// Parameters that are not there all the time (ZeRO stage 3: Rajbhandari et al. 2020, arXiv 1910.02054; PyTorch FSDP:
// Zhao et al. 2023, arXiv 2304.11277): a model says when it begins and ends to use those of a unit, and whoever keeps
// the shards brings and frees the whole. A unit is a layer, the embedding, an MTP module or what follows the last
// layer. Uses nest and may overlap; each begin has its end. Thread rule: its rank's thread; ranks that share out a
// unit make the same calls in the same order.
#pragma once
#include <string>

namespace ranklab {

class ParameterGate {
 public:
  virtual ~ParameterGate() = default;
  enum class Pass { kForward, kBackward };
  // The unit's parameters are there until leave(). `pass` tells which unit comes next.
  virtual void enter(const std::string& unit, Pass pass) = 0;
  virtual void leave(const std::string& unit) = 0;
};

// "layers.3.attention.qkv.weight" -> "layers.3"; "mtp.0.proj.weight" -> "mtp.0"; "embedding.weight" -> "embedding";
// what follows the last layer ("final_norm.weight", "head.weight") -> "final".
std::string parameter_unit(const std::string& parameter_name);

}  // namespace ranklab
