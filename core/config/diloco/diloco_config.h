// Settings of DiLoCo (Douillard et al. 2023, arXiv 2311.08105): replicas train on their own for `sync_steps` steps,
// then the mean of their movements is the gradient of an outer optimizer. With fragments and a delay, streaming DiLoCo
// (arXiv 2501.18512). Outer learning rate 1 without momentum is local SGD (arXiv 1805.09767). Thread rule: plain data.
#pragma once
#include <cstdint>
#include <optional>

namespace ranklab {

struct DilocoConfig {
  int64_t sync_steps = 0;   // 0: off; gradients are reduced over all data-parallel ranks in every step
  int replicas = 0;         // 0: as many as data-parallel ranks
  int64_t fragments = 1;    // parts of the model, which are synchronized in turn
  int64_t sync_delay = 0;   // steps between the start of a synchronization and its outer update
  double update_alpha = 0;  // share of a replica's own parameters that stays in them
  double outer_lr = 0.7;
  double outer_momentum = 0.9;
  bool outer_nesterov = true;

  bool enabled() const { return sync_steps > 0; }
  int64_t interval() const { return sync_steps / fragments; }  // steps from one fragment's outer update to the next's
  // The fragment whose outer update follows this many steps; nothing: none.
  std::optional<int64_t> updated_after(int64_t steps) const {
    if (steps <= 0 || steps % interval() != 0) return std::nullopt;
    return (steps / interval() - 1) % fragments;
  }
  // The fragment whose synchronization starts after this many steps.
  std::optional<int64_t> started_after(int64_t steps) const { return updated_after(steps + sync_delay); }
  // Of `layers` layers: fragments are runs of neighbouring layers.
  int64_t fragment_of_layer(int64_t layer, int64_t layers) const { return layer * fragments / layers; }
};

}  // namespace ranklab
