// Which backend a configuration asks for: the only place of the program that names both.
#pragma once
#include <memory>

#include "core/comm/world.h"
#include "core/runtime/train_config.h"

namespace ranklab {

std::shared_ptr<World> make_world(const TrainConfig& config);

}  // namespace ranklab
