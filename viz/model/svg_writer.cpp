#include "viz/model/svg_writer.h"

#include "core/base/text.h"

namespace ranklab::viz {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        // XML does not allow other control characters.
        out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return out;
}

}  // namespace

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
  patterns_ += "<pattern id=\"" + id + "\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"" +
               strprintf(" patternTransform=\"rotate(%d)\">", degrees()) +
               "<rect width=\"6\" height=\"6\" fill=\"#f2f2f2\"/>" +
               line(texture == Texture::kPlain ? "6" : "2.5", "6") +
               (texture == Texture::kCrossed ? line("6", "2.5") : "") + "</pattern>\n";
}

void SvgWriter::rect(double x, double y, double width, double height, Rgba fill, bool outlined,
                     std::string_view title) {
  body_ += strprintf(
      "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\" stroke=\"%s\" "
      "stroke-width=\"%s\">",
      x, y, width, height, hex(fill).c_str(), outlined ? "#d55e00" : "#ffffff", outlined ? "2" : "0.4");
  body_ += "<title>" + escaped(title) + "</title></rect>\n";
}

void SvgWriter::pattern_rect(double x, double y, double width, double height, const std::string& id,
                             std::string_view title) {
  body_ += strprintf("<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"url(#%s)\">", x, y, width,
                     height, id.c_str());
  body_ += "<title>" + escaped(title) + "</title></rect>\n";
}

void SvgWriter::line(double x0, double y0, double x1, double y1, Rgba colour) {
  body_ += strprintf("<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"%s\"/>\n", x0, y0, x1, y1,
                     hex(colour).c_str());
}

void SvgWriter::add_text(double x, double y, int size, Rgba colour, std::string_view text, const char* anchor) {
  body_ += strprintf("<text x=\"%.2f\" y=\"%.2f\" font-size=\"%d\" fill=\"%s\"%s>", x, y, size, hex(colour).c_str(),
                     anchor) +
           escaped(text) + "</text>\n";
}

std::string SvgWriter::document(double width, double height) const {
  return strprintf(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
             "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n",
             width, height, width, height) +
         "<defs>\n" + patterns_ + "</defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" + body_ +
         "</svg>\n";
}

}  // namespace ranklab::viz
