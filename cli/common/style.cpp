#include "cli/common/style.h"

#include <array>
#include <cstdlib>

#include "cli/common/terminal.h"
#include "core/base/error.h"
#include "core/base/system.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

ColorMode g_mode = ColorMode::kAuto;

bool wants_color(FILE* stream) {
  if (g_mode != ColorMode::kAuto) return g_mode == ColorMode::kAlways;
  if (!environment_variable("NO_COLOR").empty()) return false;
  const std::string force = environment_variable("CLICOLOR_FORCE");
  if (!force.empty() && force != "0") return true;
  const std::string term = environment_variable("TERM");
  return !term.empty() && term != "dumb" && environment_variable("CLICOLOR") != "0" && on_terminal(fileno(stream));
}

}  // namespace

ColorMode color_mode(const std::string& text) {
  if (text == "auto") return ColorMode::kAuto;
  if (text == "always") return ColorMode::kAlways;
  if (text == "never") return ColorMode::kNever;
  const std::array<std::string, 3> words = {"auto", "always", "never"};
  const std::string nearest = nearest_name(text, words);
  throw Error(ErrorKind::kInvalidArgument, {.where = "--color",
                                            .what = "no such choice",
                                            .got = quote(text),
                                            .want = "auto, always or never",
                                            .fix = "use --color " + (nearest.empty() ? std::string("auto") : nearest)});
}

void set_color_mode(ColorMode mode) { g_mode = mode; }

std::string Style::wrap(const char* code, std::string_view text) const {
  if (!on_ || text.empty()) return std::string(text);
  return "\033[" + std::string(code) + "m" + std::string(text) + "\033[0m";
}

std::string Style::group(int index, std::string_view text) const {
  constexpr std::array<const char*, 6> kCodes = {"36", "33", "35", "32", "34", "31"};
  return wrap(kCodes[static_cast<size_t>(index) % kCodes.size()], text);
}

Style style_for(FILE* stream) { return Style(wants_color(stream)); }

}  // namespace ranklab
