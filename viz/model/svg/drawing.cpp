#include "viz/model/svg/drawing.h"

namespace ranklab::viz {

void Drawing::rect(double x, double y, double wide, double high, Rgba fill, std::string_view title) {
  shapes_.push_back({.kind = Shape::Kind::kRect,
                     .x = x,
                     .y = y,
                     .x1 = x + wide,
                     .y1 = y + high,
                     .colour = fill,
                     .text = std::string(title)});
}

void Drawing::line(double x0, double y0, double x1, double y1, Rgba colour) {
  shapes_.push_back({.kind = Shape::Kind::kLine, .x = x0, .y = y0, .x1 = x1, .y1 = y1, .colour = colour});
}

void Drawing::text(double x, double y, int size, Rgba colour, std::string_view text) {
  add_text(Shape::Align::kLeft, x, y, size, colour, text);
}
void Drawing::centred_text(double x, double y, int size, Rgba colour, std::string_view text) {
  add_text(Shape::Align::kMiddle, x, y, size, colour, text);
}
void Drawing::right_text(double x, double y, int size, Rgba colour, std::string_view text) {
  add_text(Shape::Align::kRight, x, y, size, colour, text);
}

void Drawing::add_text(Shape::Align align, double x, double y, int size, Rgba colour, std::string_view text) {
  shapes_.push_back({.kind = Shape::Kind::kText,
                     .align = align,
                     .x = x,
                     .y = y,
                     .size = size,
                     .colour = colour,
                     .text = std::string(text)});
}

std::string svg_of(const Drawing& drawing, Ground ground) {
  SvgWriter writer({.ground = ground});
  for (const Shape& shape : drawing.shapes()) {
    if (shape.kind == Shape::Kind::kRect) {
      writer.rect(shape.x, shape.y, shape.x1 - shape.x, shape.y1 - shape.y, shape.colour, false, shape.text);
    } else if (shape.kind == Shape::Kind::kLine) {
      writer.line(shape.x, shape.y, shape.x1, shape.y1, shape.colour);
    } else if (shape.align == Shape::Align::kLeft) {
      writer.text(shape.x, shape.y, shape.size, shape.colour, shape.text);
    } else if (shape.align == Shape::Align::kMiddle) {
      writer.centred_text(shape.x, shape.y, shape.size, shape.colour, shape.text);
    } else {
      writer.right_text(shape.x, shape.y, shape.size, shape.colour, shape.text);
    }
  }
  return writer.document(drawing.width, drawing.height);
}

}  // namespace ranklab::viz
