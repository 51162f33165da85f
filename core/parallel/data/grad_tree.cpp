#include "core/parallel/data/grad_tree.h"

#include <bit>

#include "core/sim/aten.h"

namespace ranklab {

int grad_tree_levels(int num_microbatches) { return std::bit_width(static_cast<unsigned>(num_microbatches - 1)); }

void fold_into_tree(const at::Tensor& grad, int index, bool is_last, std::span<at::Tensor> levels, at::Tensor& total) {
  // Levels whose sums are complete with this microbatch: the trailing ones of its index. The last one takes all that
  // are held, which are the same levels when the count is a power of two.
  const unsigned held = static_cast<unsigned>(index);
  const int complete = std::countr_one(held);
  at::Tensor& target = is_last ? total : levels[static_cast<size_t>(complete)];
  bool started = false;
  for (size_t level = 0; level < levels.size(); ++level) {
    const bool take = is_last ? ((held >> level) & 1u) != 0 : static_cast<int>(level) < complete;
    if (!take) continue;
    if (started) {
      target.add_(levels[level]);
    } else {
      at::add_out(target, levels[level], grad);
    }
    started = true;
  }
  if (!started) target.copy_(grad);
}

}  // namespace ranklab
