// The names under which parameters are measured (parameter_key()), the same list on every rank. Thread rule: its rank's
// thread; all_parameter_keys() is collective.
#pragma once
#include <string>
#include <vector>

#include "core/comm/communicator.h"
#include "core/nn/parameter.h"

namespace ranklab {

// The keys of all ranks' parameters, ascending.
std::vector<std::string> all_parameter_keys(const ParameterRegistry& registry, Communicator& world, c10::Device device);
// Elements of the whole tensor, without the padding of shards; 0 for an expert, which is never padded and shares its
// key with others.
double whole_elements(const Parameter& parameter);
// The layer of a key: 3 for "layers.3.mlp.up.weight"; -1: none.
int64_t layer_of_key(const std::string& key);

}  // namespace ranklab
