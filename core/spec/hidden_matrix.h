// Hidden matrices are the weights that multiply hidden states; optimizers that work on whole matrices (Muon, arXiv
// 2502.16982) update them. Embeddings, the head, routers and other gates, norms and biases are not hidden matrices:
// AdamW updates them, as in that paper. Torch-free. Thread rule: pure.
#pragma once

#include "core/spec/module_spec.h"

namespace ranklab {

// `row`: a ModuleSpec or a ModuleRow.
template <typename Row>
bool is_hidden_matrix(const Row& row) {
  const ModulePart part = row.part;
  return row.shape.size() == 2 && !row.is_gate && part != ModulePart::kEmbedding && part != ModulePart::kHead &&
         part != ModulePart::kRouter;
}

}  // namespace ranklab
