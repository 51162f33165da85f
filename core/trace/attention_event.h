// What a rank's attention computes with context parallelism, as spans of kind kAttention inside its module: one for
// each part of the keys (a hop of the ring), named by the chunks of positions that queries and keys are in, "attention
// q0,15 k3,12". Chunks are what the ranks hold: n of them for n ranks, 2 n for a zigzag. Torch-free. Thread rule:
// constants.
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

namespace ranklab {

constexpr std::string_view kAttentionEvent = "attention ";
// What the name says instead of chunks where a rank attends with its part of the heads to whole sequences (a2a).
constexpr std::string_view kOwnHeads = "all positions";

enum class AttentionPass { kForward, kBackward, kRecompute };
constexpr std::array<std::string_view, 3> kAttentionPasses = {"", " backward", " recompute"};  // at the name's end

// Indices into the array. The header is followed by three numbers for each block: its chunk of queries, its chunk of
// keys, and its pairs, of a query and a key that it attends to. Event::value is their sum.
enum AttentionNumber : size_t {
  kAttentionPositions,  // of the sequence
  kAttentionChunks,     // that it is divided into; 1: whole sequences, whose pairs are not counted
  kAttentionStriped,    // 1: chunk i has the positions i, i + chunks, ...; 0: neighbouring ones
  kAttentionBlocks,
};
constexpr size_t kAttentionBlockNumbers = 3;

}  // namespace ranklab
