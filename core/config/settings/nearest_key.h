// Guesses which setting a user meant by an unknown key. Candidates in order of preference: a setting whose flag has
// that name, if it is in the same table or the name has several words ("tp", "train.weight_decay"); a key in the same
// table that is a typo away or shares its words ("train.iterations"); any setting whose flag has that name
// ("train.lr"); any key that is a typo away. Torch-free. Thread rule: pure.
#pragma once
#include <string>

namespace ranklab {

std::string nearest_config_key(const std::string& key);  // "" if none is near

}  // namespace ranklab
