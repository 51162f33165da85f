// The parts of a rank's weights that QK-clip (core/optim/qk_clip.h) scales: the rows of queries and keys in what the
// rank's optimizer owns, which are whole parameters or, with a ZeRO stage, pieces of them. Thread rule: its rank's
// thread.
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "core/optim/optimizer.h"
#include "core/optim/qk_clip.h"
#include "core/spec/model_config.h"

namespace ranklab {

// Maps a piece to the whole parameter and the piece's offset in it; a whole parameter to itself.
using OriginOf = std::function<std::pair<const Parameter*, int64_t>(const Parameter*)>;

std::vector<QkClip::Piece> qk_clip_pieces(const ModelConfig& config, double alpha,
                                          const std::vector<OptimizerState>& states, const OriginOf& origin_of);

}  // namespace ranklab
