// SVG output of the few shapes that our pictures use. Text remains text. A drawing is a file of its own, on white or
// on a dark ground, or part of a page, whose colours it then takes where a colour only means ink or paper: by the
// classes that viz/html/report/report.css knows. Thread rule: one thread.
#pragma once
#include <string>
#include <string_view>

#include "viz/model/svg/ground.h"
#include "viz/model/svg/palette.h"

namespace ranklab::viz {

// Where a drawing is to be. Patterns of one page need different names: `id` begins theirs.
struct SvgPlace {
  bool in_page = false;
  std::string id = {};
  std::string label = {};          // what it shows, for who cannot see it
  Ground ground = Ground::kLight;  // of a file of its own
};

// Colours without a meaning: in a page, the page's.
constexpr Rgba kInk = 0x33333300, kRule = 0x88888800, kPaper = 0xF4F4F400;
constexpr bool is_the_pages(Rgba colour) { return (colour & 0xFFU) == 0; }
// Those and the ground itself in a file of its own; others stay as they are.
Rgba on_ground(Rgba colour, Ground ground);
Rgba colour(Ground ground);

class SvgWriter {
 public:
  explicit SvgWriter(SvgPlace place = {}) : place_(std::move(place)) {}
  // Defines a hatching named `id` for pattern_rect().
  void hatch(const std::string& id, Rgba colour, Texture texture);
  // `title` is shown by a browser on hover. A colour that is not opaque lets what is behind it through.
  void rect(double x, double y, double width, double height, Rgba fill, bool outlined, std::string_view title);
  void pattern_rect(double x, double y, double width, double height, const std::string& id, std::string_view title);
  void line(double x0, double y0, double x1, double y1, Rgba colour);
  void text(double x, double y, int size, Rgba colour, std::string_view text) {
    add_text(x, y, size, colour, text, "");
  }
  void centred_text(double x, double y, int size, Rgba colour, std::string_view text) {
    add_text(x, y, size, colour, text, " text-anchor=\"middle\"");
  }
  void right_text(double x, double y, int size, Rgba colour, std::string_view text) {
    add_text(x, y, size, colour, text, " text-anchor=\"end\"");
  }
  void raw(const std::string& markup) { body_ += markup; }
  std::string document(double width, double height) const;

 private:
  void add_text(double x, double y, int size, Rgba colour, std::string_view text, const char* anchor);
  std::string filled(Rgba colour, const char* page_class) const;
  std::string ground() const { return hex(colour(place_.ground)); }
  SvgPlace place_;
  std::string patterns_;
  std::string body_;
};

}  // namespace ranklab::viz
