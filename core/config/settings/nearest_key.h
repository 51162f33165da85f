// Which setting somebody means by a key that there is not: one whose flag has that name ("train.lr", "tp"), one that is
// a typo away, or one of the same table with the same words ("train.iterations"). Torch-free. Thread rule: pure.
#pragma once
#include <string>

namespace ranklab {

std::string nearest_config_key(const std::string& key);  // or ""

}  // namespace ranklab
