#include "core/pipeline/action.h"

namespace ranklab {

std::string to_text(const Action& action) {
  const auto one = [](int stage, const char* letter, int microbatch) {
    return std::to_string(stage) + letter + std::to_string(microbatch);
  };
  if (action.kind != ActionKind::kFBW) return one(action.stage, letters(action.kind), action.microbatch);
  return one(action.stage, "F", action.microbatch) + "&" + one(action.back_stage, "BW", action.back_microbatch);
}

}  // namespace ranklab
