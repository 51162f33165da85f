// Drawings that only the report has as SVG: ranks as tiles, memory as bars, shards and experts as a grid. Each shows as
// much as fits on a page; a caption says what was left out. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "viz/model/run/run_facts.h"
#include "viz/model/svg/svg_writer.h"

namespace ranklab::viz {

constexpr size_t kDrawnTiles = 64, kDrawnShardRanks = 16, kDrawnBuckets = 24, kDrawnCells = 1600;

// Ranks at the places that mesh_layout.h gives them, with their coordinates and how busy they are.
std::string mesh_svg(const MeshTable& mesh, const BubbleReport& bubbles, const SvgPlace& place);
// The memory peak of each rank by category.
std::string memory_svg(const std::vector<RankMemory>& memory, const SvgPlace& place);
// Which part of each bucket each rank updates. REQUIRES: a ZeRO stage that shards.
std::string zero_svg(const ZeroTable& table, const MeshTable& mesh, const SvgPlace& place);
// The load of each expert of each layer, relative to an even load.
std::string expert_svg(const ExpertTable& table, const SvgPlace& place);

}  // namespace ranklab::viz
