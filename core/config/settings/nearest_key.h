// Which setting somebody means by a key that there is not. In this order: one whose flag has that name, if it is of the
// same table or the name has several words ("tp", "train.weight_decay"); one of the same table that is a typo away or
// has the same words ("train.iterations"); any whose flag has that name ("train.lr"); any key that is a typo away.
// Torch-free. Thread rule: pure.
#pragma once
#include <string>

namespace ranklab {

std::string nearest_config_key(const std::string& key);  // or ""

}  // namespace ranklab
