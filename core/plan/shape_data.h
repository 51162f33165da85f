// Batches of the plan's shape without tokens, for runs on shapes. Thread rule: shared, immutable.
#pragma once
#include <memory>

#include "core/runtime/components.h"

namespace ranklab {

// Whether a step's targets are counted beforehand is as with `like`, the run's own data, which are not read; null: they
// are.
std::shared_ptr<DataProvider> make_shape_data(std::shared_ptr<DataProvider> like = nullptr);

}  // namespace ranklab
