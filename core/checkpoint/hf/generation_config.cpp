#include "core/checkpoint/hf/generation_config.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/checkpoint/hf/config.h"

namespace ranklab {

// Python's json.dumps() writes ASCII alone, too.
std::string kept_generation_config(const std::string& text, const std::string& path) {
  return parse_hf_json(text, path).dump(-1, ' ', true);
}

std::string generation_config_text(const ModelConfig& config) {
  const std::string& kept = config.hf_generation_config;
  if (kept.empty()) return "";
  try {
    return parse_hf_json(kept, kGenerationConfigName).dump(2, ' ', true) + "\n";
  } catch (const Error& error) {
    throw Error(ErrorKind::kInvalidArgument,
                {.where = "--hf-generation-config",
                 .what = error.text().what,
                 .got = quote(kept),
                 .want = "a JSON object",
                 .fix = "write it as in --hf-generation-config '{\"temperature\": 0.6}', or leave it out"});
  }
}

}  // namespace ranklab
