// Batches of the plan's shape without tokens, for runs on shapes. Thread rule: shared, immutable.
#pragma once
#include <memory>

#include "core/runtime/components.h"

namespace ranklab {

// Global token counts are known beforehand exactly when `like`, the run's own data, knows them; its tokens are not
// read. Null: they are known.
std::shared_ptr<DataProvider> make_shape_data(std::shared_ptr<DataProvider> like = nullptr);

}  // namespace ranklab
