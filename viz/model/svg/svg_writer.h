// SVG output of the few shapes that our pictures use. Text stays text. A drawing is either a separate file, on a light
// or a dark ground, or part of a page. In a page, colours that only mean ink or paper are the page's, by the classes
// that viz/html/report/report.css defines. Thread rule: one thread.
#pragma once
#include <string>
#include <string_view>

#include "viz/model/svg/ground.h"
#include "viz/model/svg/palette.h"

namespace ranklab::viz {

// Where a drawing will be placed. Patterns of one page need different names, so they begin with `id`.
struct SvgPlace {
  bool in_page = false;
  std::string id = {};
  std::string label = {};          // what it shows, for users who cannot see it
  Ground ground = Ground::kLight;  // for a separate file
};

// Colours without a meaning of their own; in a page they are replaced by the page's.
constexpr Rgba kInk = 0x33333300, kRule = 0x88888800, kPaper = 0xF4F4F400;
constexpr bool is_the_pages(Rgba colour) { return (colour & 0xFFU) == 0; }
// Converts these colours and the ground itself for a separate file; other colours stay as they are.
Rgba on_ground(Rgba colour, Ground ground);
Rgba colour(Ground ground);

class SvgWriter {
 public:
  explicit SvgWriter(SvgPlace place = {}) : place_(std::move(place)) {}
  // Defines a hatch pattern named `id` for pattern_rect().
  void hatch(const std::string& id, Rgba colour, Texture texture);
  // A browser shows `title` on hover. A colour that is not opaque lets the shapes behind it show through.
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
