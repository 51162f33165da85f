// Tensors that a run has written into files, of ranklab (`train --dump`) or of any other program: a folder
// DIR/step-N/rank-R.safetensors. Names are MODULE/KIND or MODULE/KIND/MICROBATCH with the kinds input, output,
// grad_output and grad_input, weight/PARAMETER and grad/PARAMETER. Metadata, all of it optional: "coordinates" of the
// rank, "order" (a JSON list of names as they were computed), and under "slice/NAME" a JSON object: "global_shape", and
// which part of it the tensor is: "dims" ({"0": [[4, 8]]}: ranges of positions by dim), or as ranklab writes it.
// Without one a tensor is whole. Thread rule: main thread.
#pragma once
#include <string>

#include "core/parity/parity_record.h"

namespace ranklab {

// Throws kIo, kBadFile naming the file.
ParityRecord read_dumps(const std::string& folder);

}  // namespace ranklab
