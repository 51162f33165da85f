// The name under which a checkpoint stores the state of delayed scaling: the latest absolute maxima of a module's
// tensors, in a buffer "MODULE.amax_history". These buffers belong to the precision recipe and not to the model: a
// model trained with another precision has none.
#pragma once
#include <string_view>

namespace ranklab {

inline constexpr std::string_view kAmaxHistorySuffix = ".amax_history";

}  // namespace ranklab
