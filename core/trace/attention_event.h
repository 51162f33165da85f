// What a rank's attention computes under context parallelism, as spans of kind kAttention inside its module: one for
// each part of the keys (a hop of the ring), named after the chunks of positions that queries and keys are in,
// "attention q0,15 k3,12". Chunks are the units that ranks hold: n of them for n ranks, 2 n for a zigzag. Torch-free.
// Thread rule: constants.
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

namespace ranklab {

constexpr std::string_view kAttentionEvent = "attention ";
// Replaces the chunks in the name if a rank attends to whole sequences with its part of the heads (a2a).
constexpr std::string_view kOwnHeads = "all positions";

enum class AttentionPass { kForward, kBackward, kRecompute };
constexpr std::array<std::string_view, 3> kAttentionPasses = {"", " backward", " recompute"};  // appended to the name

// Indices into the array. The header is followed by three numbers for each block: its chunk of queries, its chunk of
// keys, and the number of (query, key) pairs in it. Event::value is the sum of these pairs.
enum AttentionNumber : size_t {
  kAttentionPositions,  // length of the sequence
  kAttentionChunks,     // number of chunks; 1: whole sequences, whose pairs are not counted
  kAttentionStriped,    // 1: chunk i has the positions i, i + chunks, ...; 0: consecutive positions
  kAttentionBlocks,
};
constexpr size_t kAttentionBlockNumbers = 3;

}  // namespace ranklab
