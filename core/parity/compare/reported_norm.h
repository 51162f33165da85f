// Compares the norm by which a run clips with the norm of the gradients that it clips. Rounding may change the
// gradients and with them the norm, but that the two agree must hold in any precision. Thread rule: pure.
#pragma once
#include <optional>

#include "core/parity/parity_record.h"

namespace ranklab {

class ParityReference;

// The norm that `got` reports divided by the norm of its recorded gradients, relative to the same ratio in `want`: 1 if
// it is right. Returns nothing if a record does not report its norm, if the two records have different gradients (files
// may have only some), or if a gradient is incomplete or not finite.
std::optional<double> reported_norm_ratio(const ParityRecord& got, const ParityReference& want, int64_t step);

}  // namespace ranklab
