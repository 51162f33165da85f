// What Hugging Face's package made of some texts with tokenizers of every kind: tests/data/make_tokenizer_golden.py.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/files/input_file.h"

namespace ranklab {

inline std::string golden_text(const std::string& name) {
  return read_whole_file(std::string(RANKLAB_TOKENIZERS) + "/" + name, 1 << 22, {.where = "test"});
}

inline const nlohmann::json& tokenizer_golden() {
  static const nlohmann::json kGolden = nlohmann::json::parse(golden_text("golden.json"));
  return kGolden;
}

}  // namespace ranklab
