// The optimizers that a run can choose, in the order of OptimizerKind, with what settings, memory estimates and tests
// need to know about them. What an optimizer computes is in a file of its own (optimizer.h);
// core/runtime/optimizer_choice.cpp creates it from a run's settings. Torch-free. Thread rule: constants.
#pragma once
#include <array>
#include <string_view>

namespace ranklab {

enum class OptimizerKind { kAdamW, kSgd, kMuon, kLion };

struct OptimizerRow {
  std::string_view name;   // as --optimizer names it
  int moments = 2;         // numbers kept for each element ...
  int matrix_moments = 2;  // ... of a hidden matrix (core/spec/hidden_matrix.h)
};

inline constexpr std::array kOptimizers = {
    OptimizerRow{"adamw", 2, 2},
    OptimizerRow{"sgd", 1, 1},  // none without momentum
    OptimizerRow{"muon", 2, 1},
    OptimizerRow{"lion", 1, 1},
};

constexpr const OptimizerRow& optimizer_row(OptimizerKind kind) { return kOptimizers[static_cast<size_t>(kind)]; }

// How data-parallel ranks share Muon's orthogonalization (core/runtime/rank_matrices.h), in the order of
// --muon-distribution.
enum class MuonDistribution { kDuplicated, kDistributed, kLayerSharded };
inline constexpr std::array<std::string_view, 3> kMuonDistributions = {"duplicated", "distributed", "layer-sharded"};

}  // namespace ranklab
