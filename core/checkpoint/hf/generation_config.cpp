#include "core/checkpoint/hf/generation_config.h"

#include "core/checkpoint/hf/config.h"

namespace ranklab {

// ASCII only, as written by Python's json.dumps().
std::string kept_generation_config(const std::string& text, const std::string& path) {
  return parse_hf_json(text, path).dump(-1, ' ', true);
}

std::string generation_config_text(const ModelConfig& config) {
  const std::string& kept = config.hf_generation_config;
  if (kept.empty()) return "";
  return parse_hf_json(kept, "--hf-generation-config").dump(2, ' ', true) + "\n";
}

}  // namespace ranklab
