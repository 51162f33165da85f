// What a mixture of experts records, as instants with an array (Event::array) and the layer in Event::tag. Torch-free.
// Thread rule: constants.
#pragma once
#include <string_view>

namespace ranklab {

// A rank's forward of one microbatch through one layer. Array: how many of this rank's token assignments each expert
// got (all experts, dropped ones not counted); value: assignments dropped by the capacity.
constexpr std::string_view kRoutingEvent = "routing";
// After a step, on every rank of a stage that has the layer. Array: assignments of the whole global batch to each
// expert; value: dropped ones.
constexpr std::string_view kExpertLoadEvent = "expert load";
// The bias after its update. Array: one number an expert.
constexpr std::string_view kExpertBiasEvent = "expert bias";

}  // namespace ranklab
