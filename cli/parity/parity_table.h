// A parity result as the plain table that pictures are made of. Cost: one row a tensor. Thread rule: pure.
#pragma once
#include "core/parity/microscope.h"
#include "viz/model/parity/parity_map.h"

namespace ranklab {

// Without the words about it (parity_text.h).
viz::ParityMap parity_table(const ParityResult& result);

}  // namespace ranklab
