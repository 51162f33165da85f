// Batches of the plan's shape without tokens, for runs on shapes. Thread rule: shared, immutable.
#pragma once
#include <memory>

#include "core/runtime/components.h"

namespace ranklab {

std::shared_ptr<DataProvider> make_shape_data();

}  // namespace ranklab
