#include "core/spec/module_spec.h"

namespace ranklab {

const char* name(ModulePart part) {
  switch (part) {
    case ModulePart::kEmbedding:
      return "embedding";
    case ModulePart::kAttentionNorm:
    case ModulePart::kMlpNorm:
    case ModulePart::kFinalNorm:
      return "norms";
    case ModulePart::kAttentionIn:
    case ModulePart::kAttentionOut:
      return "attention";
    case ModulePart::kMambaIn:
    case ModulePart::kMambaOut:
      return "Mamba-2";
    case ModulePart::kMlpUp:
    case ModulePart::kMlpDown:
      return "MLP";
    case ModulePart::kRouter:
      return "router";
    case ModulePart::kSharedExperts:
      return "shared experts";
    case ModulePart::kLatentProjection:
      return "latent projections";
    case ModulePart::kExperts:
      return "routed experts";
    case ModulePart::kHead:
      return "head";
    case ModulePart::kMtpIn:
      return "MTP projection";
  }
  return "?";
}

}  // namespace ranklab
