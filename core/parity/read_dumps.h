// Reads tensors that a run wrote into files, a run of ranklab (`train --dump`) or of any other program: a folder DIR
// with files DIR/step-N/rank-R.safetensors. Names are MODULE/KIND or MODULE/KIND/MICROBATCH with the kinds input,
// output, grad_output and grad_input, weight/PARAMETER and grad/PARAMETER. Metadata, all of it optional: "coordinates"
// of the rank, "order" (a JSON list of names in the order in which they were computed), and under "slice/NAME" a JSON
// object with "global_shape" and the part of it that the tensor is: "dims" ({"0": [[4, 8]]}: ranges of positions per
// dim), or the form in which ranklab writes it. A tensor without a slice is whole. Thread rule: main thread.
#pragma once
#include <string>

#include "core/parity/parity_record.h"

namespace ranklab {

// Throws kIo, or kBadFile naming the file.
ParityRecord read_dumps(const std::string& folder);

}  // namespace ranklab
