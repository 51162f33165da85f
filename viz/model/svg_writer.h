// SVG output of the few shapes that our pictures use. Text remains text. Thread rule: one thread.
#pragma once
#include <string>
#include <string_view>

#include "viz/model/palette.h"

namespace ranklab::viz {

class SvgWriter {
 public:
  // Defines a hatching named `id` for pattern_rect().
  void hatch(const std::string& id, Rgba colour, Texture texture);
  // `title` is shown by a browser on hover.
  void rect(double x, double y, double width, double height, Rgba fill, bool outlined, std::string_view title);
  void pattern_rect(double x, double y, double width, double height, const std::string& id, std::string_view title);
  void line(double x0, double y0, double x1, double y1, Rgba colour);
  void text(double x, double y, int size, Rgba colour, std::string_view text) {
    add_text(x, y, size, colour, text, "");
  }
  void centred_text(double x, double y, int size, Rgba colour, std::string_view text) {
    add_text(x, y, size, colour, text, " text-anchor=\"middle\"");
  }
  std::string document(double width, double height) const;

 private:
  void add_text(double x, double y, int size, Rgba colour, std::string_view text, const char* anchor);
  std::string patterns_;
  std::string body_;
};

}  // namespace ranklab::viz
