// The part of a model that a parameter belongs to: ZeRO stage 3 gathers a unit as a whole, and pipeline stages are cut
// between layers. Torch-free. Thread rule: plain data.
#pragma once
#include <cstdint>
#include <string>

namespace ranklab {

struct ModelUnit {
  enum class Place { kFirst, kLayer, kMtp, kLast };
  std::string name = "final";  // "embedding", "layers.3", "mtp.0", "final"
  Place place = Place::kLast;
  int64_t layer = -1;         // kLayer: its number in the model
  bool used_by_last = false;  // kFirst: the last stage uses it too (a tied embedding)
  // kFirst: the stage with multi-token prediction uses it too, if that is neither the first nor the last stage
  bool used_by_mtp = false;
};

}  // namespace ranklab
