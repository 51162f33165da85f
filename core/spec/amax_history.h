// The name of what a checkpoint holds of delayed scaling: the newest largest magnitudes of a module's tensors, in a
// buffer "MODULE.amax_history". They are the recipe's, not the model's: a model with other precision has none.
#pragma once
#include <string_view>

namespace ranklab {

inline constexpr std::string_view kAmaxHistorySuffix = ".amax_history";

}  // namespace ranklab
