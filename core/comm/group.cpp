#include "core/comm/group.h"

#include "core/base/text.h"

namespace ranklab {

std::string Group::label() const {
  return std::string(name(axis)) + "[" + join(std::span<const int>(global_ranks), " ") + "]";
}

}  // namespace ranklab
