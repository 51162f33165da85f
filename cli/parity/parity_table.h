// Converts a parity result to the plain table from which pictures are made. Cost: one row a tensor. Thread rule: pure.
#pragma once
#include "core/parity/microscope.h"
#include "viz/model/parity/parity_map.h"

namespace ranklab {

// The texts about the result are added separately (parity_text.h).
viz::ParityMap parity_table(const ParityResult& result);

}  // namespace ranklab
