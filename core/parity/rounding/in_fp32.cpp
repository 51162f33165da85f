#include "core/parity/rounding/in_fp32.h"

namespace ranklab {

TrainConfig in_fp32(TrainConfig config) {
  const TrainConfig plain;
  config.bf16 = plain.bf16;
  config.params_dtype = plain.params_dtype;
  config.precision = plain.precision;
  config.muon_ns_dtype = plain.muon_ns_dtype;
  return config;
}

}  // namespace ranklab
