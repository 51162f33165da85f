#include "viz/model/svg/svg_writer.h"

#include "core/base/text.h"
#include "viz/model/svg/markup.h"

namespace ranklab::viz {

Rgba on_ground(Rgba colour, Ground ground) {
  if (ground == Ground::kLight || !is_the_pages(colour)) return colour;
  return colour == kInk ? 0xDEE3EA00 : colour == kRule ? 0x6B768300 : colour == kPaper ? 0x20262E00 : colour;
}

Rgba colour(Ground ground) { return ground == Ground::kLight ? 0xFFFFFFFF : 0x171A1FFF; }

void SvgWriter::hatch(const std::string& id, Rgba colour, Texture texture) {
  const auto degrees = [&] {
    switch (texture) {
      case Texture::kVertical:
        return 0;
      case Texture::kHorizontal:
        return 90;
      case Texture::kFalling:
        return -45;
      default:
        return 45;
    }
  };
  const auto line = [&](const char* width, const char* height) {
    return std::string("<rect width=\"") + width + "\" height=\"" + height + "\" fill=\"" + hex(colour) + "\"/>";
  };
  patterns_ += "<pattern id=\"" + place_.id + id + "\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"" +
               strprintf(" patternTransform=\"rotate(%d)\">", degrees()) +
               (place_.in_page ? "<rect width=\"6\" height=\"6\" class=\"hole\"/>"
                               : "<rect width=\"6\" height=\"6\" fill=\"#f2f2f2\"/>") +
               line(texture == Texture::kPlain ? "6" : "2.5", "6") +
               (texture == Texture::kCrossed ? line("6", "2.5") : "") + "</pattern>\n";
}

// The attributes for the fill of a shape.
std::string SvgWriter::filled(Rgba colour, const char* page_class) const {
  if (place_.in_page && is_the_pages(colour)) return std::string("class=\"") + page_class + "\"";
  const unsigned alpha = colour & 0xFFU;
  std::string out = "fill=\"" + hex(on_ground(colour, place_.ground)) + "\"";
  if (alpha != 0 && alpha != 0xFF) out += strprintf(" fill-opacity=\"%.3f\"", alpha / 255.0);
  return out;
}

void SvgWriter::rect(double x, double y, double width, double height, Rgba fill, bool outlined,
                     std::string_view title) {
  body_ += strprintf("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" %s", x, y, width, height,
                     filled(fill, "paper").c_str());
  if (outlined)
    body_ += " stroke=\"#d55e00\" stroke-width=\"2\"";
  else if (!place_.in_page)
    body_ += " stroke=\"" + ground() + "\" stroke-width=\"0.4\"";
  body_ += title.empty() ? "/>\n" : "><title>" + as_markup(title) + "</title></rect>\n";
}

void SvgWriter::pattern_rect(double x, double y, double width, double height, const std::string& id,
                             std::string_view title) {
  body_ += strprintf("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"url(#%s)\">", x, y, width,
                     height, (place_.id + id).c_str());
  body_ += "<title>" + as_markup(title) + "</title></rect>\n";
}

void SvgWriter::line(double x0, double y0, double x1, double y1, Rgba colour) {
  const std::string stroke = place_.in_page && is_the_pages(colour)
                                 ? "class=\"rule\""
                                 : "stroke=\"" + hex(on_ground(colour, place_.ground)) + "\"";
  body_ += strprintf("<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" %s/>\n", x0, y0, x1, y1, stroke.c_str());
}

void SvgWriter::add_text(double x, double y, int size, Rgba colour, std::string_view text, const char* anchor) {
  body_ += strprintf("<text x=\"%.2f\" y=\"%.2f\" font-size=\"%d\" %s%s>", x, y, size, filled(colour, "ink").c_str(),
                     anchor) +
           as_markup(text) + "</text>\n";
}

std::string SvgWriter::document(double width, double height) const {
  if (place_.in_page)
    return strprintf("<svg class=\"drawing\" role=\"img\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\"",
                     width, height, width, height) +
           " aria-label=\"" + as_markup(place_.label) + "\">\n" +
           (patterns_.empty() ? "" : "<defs>\n" + patterns_ + "</defs>\n") + body_ + "</svg>\n";
  return strprintf(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
             "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n",
             width, height, width, height) +
         "<defs>\n" + patterns_ + "</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"" + ground() + "\"/>\n" +
         body_ + "</svg>\n";
}

}  // namespace ranklab::viz
