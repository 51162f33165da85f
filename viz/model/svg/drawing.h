// A drawing of a few shapes, kept so that it can become an SVG here or pixels elsewhere (viz/app/drawing_image.h), on a
// light or a dark ground. Colours without a meaning of their own depend on the ground: kInk, kRule, kPaper
// (svg_writer.h). Lengths are pixels of an SVG. Thread rule: plain data.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "viz/model/svg/ground.h"
#include "viz/model/svg/palette.h"
#include "viz/model/svg/svg_writer.h"

namespace ranklab::viz {

struct Shape {
  enum class Kind : uint8_t { kRect, kLine, kText };
  enum class Align : uint8_t { kLeft, kMiddle, kRight };
  Kind kind = Kind::kRect;
  Align align = Align::kLeft;
  double x = 0, y = 0;    // for a text: its aligned end or middle, on the baseline
  double x1 = 0, y1 = 0;  // the opposite corner, or the line's end
  int size = 0;           // font size of a text
  Rgba colour = 0;
  std::string text = {};  // for a rectangle: what it shows on hover
};

class Drawing {
 public:
  void rect(double x, double y, double width, double height, Rgba fill, std::string_view title = {});
  void line(double x0, double y0, double x1, double y1, Rgba colour);
  void text(double x, double y, int size, Rgba colour, std::string_view text);
  void centred_text(double x, double y, int size, Rgba colour, std::string_view text);
  void right_text(double x, double y, int size, Rgba colour, std::string_view text);

  double width = 0, height = 0;
  const std::vector<Shape>& shapes() const { return shapes_; }

 private:
  void add_text(Shape::Align align, double x, double y, int size, Rgba colour, std::string_view text);
  std::vector<Shape> shapes_;
};

std::string svg_of(const Drawing& drawing, Ground ground);

}  // namespace ranklab::viz
