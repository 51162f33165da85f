// Colour for human readers: text is wrapped in escape codes if its stream is a terminal that supports them, and
// unchanged otherwise. The first of these that is set decides: --color=always|never, NO_COLOR (no-color.org),
// CLICOLOR_FORCE (bixense.com/clicolors), TERM=dumb or none, and whether the stream is a terminal (terminal.h). Colour
// is never the only cue. Thread rule: set_color_mode() before other threads start; the rest is pure.
#pragma once
#include <cstdio>
#include <string>
#include <string_view>

namespace ranklab {

enum class ColorMode { kAuto, kAlways, kNever };

// "auto", "always" or "never"; throws kInvalidArgument for anything else.
ColorMode color_mode(const std::string& text);
void set_color_mode(ColorMode mode);

class Style {
 public:
  explicit Style(bool on) : on_(on) {}
  bool on() const { return on_; }
  std::string bold(std::string_view text) const { return wrap("1", text); }
  std::string dim(std::string_view text) const { return wrap("2", text); }
  std::string red(std::string_view text) const { return wrap("31", text); }
  std::string green(std::string_view text) const { return wrap("32", text); }
  std::string yellow(std::string_view text) const { return wrap("33", text); }
  std::string cyan(std::string_view text) const { return wrap("36", text); }
  // Writes the text in one of six colours, which distinguish neighbouring groups in a drawing.
  std::string group(int index, std::string_view text) const;

 private:
  std::string wrap(const char* code, std::string_view text) const;
  bool on_;
};

Style style_for(FILE* stream);

}  // namespace ranklab
