// The report's drawings that no window has as SVG: ranks as tiles, memory as bars, shards and experts as a grid. Each
// takes what fits a page; a caption says what was left out. Thread rule: pure.
#pragma once
#include <string>
#include <vector>

#include "viz/model/run/run_facts.h"
#include "viz/model/svg/svg_writer.h"

namespace ranklab::viz {

constexpr size_t kDrawnTiles = 64, kDrawnShardRanks = 16, kDrawnBuckets = 24, kDrawnCells = 1600;

// Ranks where mesh_layout.h puts them, with their coordinates and how busy they are.
std::string mesh_svg(const MeshTable& mesh, const BubbleReport& bubbles, const SvgPlace& place);
// Each rank's fullest moment by category.
std::string memory_svg(const std::vector<RankMemory>& memory, const SvgPlace& place);
// Which part of each bucket a rank updates; REQUIRES: a stage that shards.
std::string zero_svg(const ZeroTable& table, const MeshTable& mesh, const SvgPlace& place);
// Load of each expert of each layer, to an even one.
std::string expert_svg(const ExpertTable& table, const SvgPlace& place);

}  // namespace ranklab::viz
