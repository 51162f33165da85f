// What mixture-of-experts layers record, as instants with an array (Event::array) and the layer in Event::tag.
// Torch-free. Thread rule: constants.
#pragma once
#include <string_view>

namespace ranklab {

// One rank's forward of one microbatch through one layer. Array: the number of this rank's token assignments for each
// expert (all experts, without dropped assignments). Value: the number of assignments dropped by the capacity limit.
constexpr std::string_view kRoutingEvent = "routing";
// After a step, on every rank of a stage that has the layer. Array: the number of assignments of the whole global batch
// for each expert. Value: the number of dropped assignments.
constexpr std::string_view kExpertLoadEvent = "expert load";
// The expert bias after its update. Array: one number per expert.
constexpr std::string_view kExpertBiasEvent = "expert bias";

}  // namespace ranklab
