#include "core/base/error.h"
#include "core/base/text.h"
#include "viz/app/imgui_config.h"

namespace ranklab::viz {

void imgui_assertion_failed(const char* expression, const char* file, int line) {
  throw Error(ErrorKind::kInternal, {.where = "viz window",
                                     .what = "Dear ImGui was used wrongly",
                                     .got = strprintf("%s at %s:%d", expression, file, line),
                                     .fix = "report it with the steps that led here"});
}

}  // namespace ranklab::viz
