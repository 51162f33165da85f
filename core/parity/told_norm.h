// The norm by which a run clips beside that of the gradients that it clips. Rounding may move all of them, and so the
// norm: that the two belong together holds in any number of bits. Thread rule: pure.
#pragma once
#include <optional>

#include "core/parity/parity_record.h"

namespace ranklab {

class ParityReference;

// What `got` tells as the norm over the norm of its gradients, in units of the same of `want`: 1 where it is right.
// Nothing where a record does not tell its norm, or has other gradients than the other one (files may have a part),
// not all elements of one, or such as are not finite.
std::optional<double> told_over_own_norm(const ParityRecord& got, const ParityReference& want, int64_t step);

}  // namespace ranklab
