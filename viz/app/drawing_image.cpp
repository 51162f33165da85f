#include "viz/app/drawing_image.h"

#include <imgui.h>

#include <cmath>

#include "core/base/error.h"
#include "core/base/text.h"
#include "viz/app/gui_context.h"
#include "viz/app/image.h"
#include "viz/app/software_renderer.h"
#include "viz/model/svg/svg_writer.h"

namespace ranklab::viz {
namespace {

constexpr float kPixelsEach = 2, kLongestSide = 16'384;
// For DejaVu Sans: a font size of ImGui is the distance from ascent to descent, that of an SVG is an em.
constexpr float kHighPerEm = 1.164F, kAscentPerEm = 0.928F;
constexpr int kFontFrames = 3;  // glyphs are created in the frame after their first use

ImU32 color_of(Rgba rgba, Ground ground) {
  const Rgba shown = on_ground(rgba, ground);
  const unsigned alpha = is_the_pages(shown) ? 255 : shown & 0xFFU;
  return IM_COL32(shown >> 24, shown >> 16 & 255, shown >> 8 & 255, alpha);
}

ImVec2 at(double x, double y) { return {static_cast<float>(x) * kPixelsEach, static_cast<float>(y) * kPixelsEach}; }

void draw(ImDrawList& list, const Shape& shape, Ground ground) {
  const ImU32 color = color_of(shape.colour, ground);
  if (shape.kind == Shape::Kind::kRect) return list.AddRectFilled(at(shape.x, shape.y), at(shape.x1, shape.y1), color);
  if (shape.kind == Shape::Kind::kLine)
    return list.AddLine(at(shape.x, shape.y), at(shape.x1, shape.y1), color, 1.25F * kPixelsEach);
  const float em = static_cast<float>(shape.size) * kPixelsEach, size = em * kHighPerEm;
  ImFont* font = ImGui::GetFont();
  const char *begin = shape.text.data(), *end = begin + shape.text.size();
  ImVec2 place = at(shape.x, shape.y);
  const float wide = font->CalcTextSizeA(size, 1e9F, 0, begin, end).x;
  place.x -= shape.align == Shape::Align::kMiddle ? wide / 2 : shape.align == Shape::Align::kRight ? wide : 0;
  place.y -= em * kAscentPerEm;
  list.AddText(font, size, {std::round(place.x), std::round(place.y)}, color, begin, end);
}

}  // namespace

std::string png_of(const Drawing& drawing, Ground ground) {
  const float wide = static_cast<float>(drawing.width) * kPixelsEach,
              high = static_cast<float>(drawing.height) * kPixelsEach;
  RANKLAB_CHECK(wide <= kLongestSide && high <= kLongestSide, ErrorKind::kInvalidArgument, .where = "--out",
                .what = "the picture is too large for a PNG", .got = strprintf("%.0f x %.0f pixels", wide, high),
                .want = strprintf("at most %.0f a side", kLongestSide), .fix = "write an .svg");
  const GuiContext gui("", 1);
  const SoftwareRenderer renderer;
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = {std::ceil(wide), std::ceil(high)};
  io.DeltaTime = 1.0F / 60;
  Image image;
  for (int frame = 0; frame < kFontFrames; ++frame) {
    ImGui::NewFrame();
    for (const Shape& shape : drawing.shapes()) draw(*ImGui::GetBackgroundDrawList(), shape, ground);
    ImGui::Render();
    render_software(*ImGui::GetDrawData(), frame + 1 == kFontFrames ? &image : nullptr,
                    color_of(colour(ground), Ground::kLight));
  }
  return png_bytes(image);
}

}  // namespace ranklab::viz
