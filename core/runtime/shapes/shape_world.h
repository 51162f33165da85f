// Worlds of shapes (backends/meta), in which one rank may run in place of others. Torch-free. Thread rule: as for
// World.
#pragma once
#include <functional>
#include <memory>
#include <vector>

namespace ranklab {

class World;  // core/comm/world.h

// For each global rank, the rank that runs in its place.
using StandIns = std::vector<int>;
// Makes a world of shapes. Programs pass make_meta_world().
using ShapeWorldMaker = std::function<std::shared_ptr<World>(StandIns)>;

}  // namespace ranklab
