#include "cli/config/megatron_differences.h"

namespace ranklab {
namespace {

bool is(const MegatronWords& words, const char* flag, const char* value) { return words.text(flag) == value; }

// Megatron-LM's optimizer (emerging_optimizers) scales an update by sqrt(max(rows, columns)) times that factor, and
// each of its five steps has its own polynomial.
void muon(const MegatronWords& words, std::vector<std::string>& differences) {
  if (!is(words, "--optimizer", "muon") && !is(words, "--optimizer", "dist_muon")) return;
  if (words.text("--muon-scale-mode").value_or("spectral") != "spectral" || !words.is("--muon-extra-scale-factor", 0.2))
    differences.push_back("--muon-scale-mode: updates are scaled as with spectral and --muon-extra-scale-factor 0.2");
  if (words.text("--muon-coefficient-type").value_or("quintic") != "simple")
    differences.push_back("--muon-coefficient-type: all steps have the coefficients of simple");
  if (is(words, "--muon-tp-mode", "blockwise"))
    differences.push_back(
        "--muon-tp-mode blockwise: whole matrices are orthogonalized, however the layout splits them");
  if (is(words, "--muon-scalar-optimizer", "lion"))
    differences.push_back("--muon-scalar-optimizer lion: AdamW updates what Muon does not");
}

// Megatron-LM scales only the weights of projections.
void qk_clip(const MegatronWords& words, std::vector<std::string>& differences) {
  if (!words.has("--qk-clip") || words.has("--multi-latent-attention")) return;
  if (words.has("--qk-layernorm"))
    differences.push_back(
        "--qk-clip: the weights of the norms are scaled, because norms undo a scaling of the projections");
  else if (!words.has("--disable-bias-linear") || words.has("--add-qkv-bias"))
    differences.push_back("--qk-clip: the biases of queries and keys are scaled, too");
}

void experts(const MegatronWords& words, std::vector<std::string>& differences) {
  if (is(words, "--moe-router-load-balancing-type", "global_aux_loss"))
    differences.push_back(
        "--moe-router-load-balancing-type global_aux_loss: tokens are counted over the microbatches that all "
        "data-parallel ranks have at a time, and not accumulated over those of a step");
  if (is(words, "--moe-token-drop-policy", "position"))
    differences.push_back("--moe-token-drop-policy position: an expert keeps the tokens with the largest weights");
}

}  // namespace

std::vector<std::string> megatron_differences(const MegatronWords& words) {
  std::vector<std::string> differences;
  muon(words, differences);
  qk_clip(words, differences);
  if (words.has("--num-experts")) experts(words, differences);
  if (words.has("--eod-mask-loss") && !words.has("--calculate-per-token-loss"))
    differences.push_back(
        "--eod-mask-loss: each token of the global batch counts alike, as with --calculate-per-token-loss, not each "
        "microbatch");
  return differences;
}

}  // namespace ranklab
