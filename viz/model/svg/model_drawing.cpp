#include "viz/model/svg/model_drawing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <utility>

#include "core/base/numbers/histogram_axis.h"
#include "core/base/text.h"

namespace ranklab::viz {
namespace {

constexpr double kPictureWide = 980, kPictureSide = 24, kNameWide = 310, kRowHigh = 19, kNumberWide = 62,
                 kSectionGap = 26;
constexpr int kCountText = 11, kLineText = 12, kHeadText = 14;
constexpr double kLetter = 6.6;  // width of a character of kLineText
constexpr Rgba kBar = 0x206AD0FF, kIdleBar = 0xA9C4EBFF, kFlops = 0x3CB47EFF, kNegative = 0xEDA40EFF;
constexpr int kAcross = 3;  // histograms per row
constexpr double kHistogramHigh = 96, kHistogramGap = 28;
constexpr int64_t kHistogramPowers = 24;

// The end of a name says more than its beginning.
std::string shortened(const std::string& name, double wide) {
  const auto most = static_cast<size_t>(wide / kLetter);
  return name.size() <= most ? name : "..." + name.substr(name.size() - most + 3);
}

class Picture {
 public:
  explicit Picture(const ModelPicture& picture) : p_(picture) {}

  Drawing drawing() {
    y_ += 12;
    paragraph(p_.title, 16);
    for (const std::string& fact : p_.facts) out_.text(kPictureSide, y_ += kRowHigh, kLineText, kInk, fact);
    modules();
    memory();
    if (p_.roofline)
      y_ += draw_roofline(out_, *p_.roofline, kPictureSide, y_ + kSectionGap, kPictureWide - 2 * kPictureSide) +
            kSectionGap;
    histograms();
    out_.width = kPictureWide;
    out_.height = y_ + kPictureSide;
    return std::move(out_);
  }

 private:
  // Uses as many lines as needed.
  void paragraph(const std::string& text, int size) {
    const double letter = kLetter * size / kLineText, high = kRowHigh * size / kLineText;
    std::istringstream words(text);
    std::string line;
    for (std::string word; words >> word; line += (line.empty() ? "" : " ") + word) {
      if (static_cast<double>(line.size() + word.size()) * letter < kPictureWide - 2 * kPictureSide) continue;
      out_.text(kPictureSide, y_ += high, size, kInk, line);
      line.clear();
    }
    out_.text(kPictureSide, y_ += high, size, kInk, line);
  }

  // The width of each of the two columns of bars.
  double bars_wide() const { return (kPictureWide - 2 * kPictureSide - kNameWide) / 2 - kNumberWide - 20; }
  double first_bar() const { return kPictureSide + kNameWide; }
  double second_bar() const { return first_bar() + bars_wide() + kNumberWide + 40; }

  void modules() {
    double most_parameters = 1, most_flops = 1;
    bool idle = false;
    for (const ModelPicture::Module& module : p_.modules) {
      most_parameters = std::max(most_parameters, module.parameters);
      most_flops = std::max(most_flops, module.flops);
      idle = idle || module.active < module.parameters;
    }
    y_ += kSectionGap;
    out_.text(kPictureSide, y_, kHeadText, kInk, "modules");
    out_.text(first_bar(), y_, kHeadText, kInk, idle ? "parameters (dark: active for a token)" : "parameters");
    out_.text(second_bar(), y_, kHeadText, kInk, "FLOP of a token, forward");
    y_ += 8;
    for (const ModelPicture::Module& module : p_.modules) {
      const double base = y_ + kRowHigh - 5;
      out_.text(kPictureSide, base, kLineText, kInk, shortened(module.name, kNameWide - 10));
      bar(first_bar(), module.parameters / most_parameters, module.active / most_parameters, kBar,
          module.parameters_text);
      bar(second_bar(), module.flops / most_flops, module.flops / most_flops, kFlops, module.flops_text);
      y_ += kRowHigh;
    }
  }

  void bar(double x, double share, double dark, Rgba colour, const std::string& text) {
    const double high = kRowHigh - 5;
    if (share > 0) out_.rect(x, y_ + 2, std::max(share * bars_wide(), 1.0), high, kIdleBar, text);
    if (dark > 0) out_.rect(x, y_ + 2, std::max(dark * bars_wide(), 1.0), high, colour, text);
    out_.text(x + share * bars_wide() + 6, y_ + kRowHigh - 5, kCountText, kInk, text);
  }

  void memory() {
    double sum = 0;
    for (const ModelPicture::Memory& part : p_.memory) sum += part.bytes;
    if (sum <= 0) return;
    y_ += kSectionGap;
    out_.text(kPictureSide, y_, kHeadText, kInk, "memory of a rank: " + human_bytes(sum));
    out_.text(kPictureSide, y_ += kRowHigh, kLineText, kInk, p_.rank);
    y_ += 8;
    double x = kPictureSide;
    for (const ModelPicture::Memory& part : p_.memory) {
      const double wide = part.bytes / sum * (kPictureWide - 2 * kPictureSide);
      out_.rect(x, y_, wide, 20, colour(part.category), words(part));
      x += wide;
    }
    y_ += 22;
    x = kPictureSide;
    for (const ModelPicture::Memory& part : p_.memory) {
      if (part.bytes <= 0) continue;
      const double wide = 30 + kLetter * static_cast<double>(words(part).size());
      if (x + wide > kPictureWide - kPictureSide) x = kPictureSide, y_ += kRowHigh;
      out_.rect(x, y_ + 6, 12, 10, colour(part.category), words(part));
      out_.text(x + 17, y_ + 15, kLineText, kInk, words(part));
      x += wide;
    }
    y_ += kRowHigh;
  }

  static std::string words(const ModelPicture::Memory& part) {
    return std::string(name(part.category)) + " " + human_bytes(part.bytes);
  }

  void histograms() {
    if (p_.histograms.empty()) return;
    std::vector<double> all(ValueHistogram::kBins);
    for (const ModelPicture::Histogram& one : p_.histograms) {
      for (size_t bin = 0; bin < all.size(); ++bin) all[bin] += one.counts[bin];
    }
    axis_ = histogram_axis(all, kHistogramPowers, 2);
    for (const ModelPicture::Histogram& one : p_.histograms)
      for (const double count : axis_.pool(one.counts)) most_ = std::max(most_, count);
    y_ += kSectionGap;
    out_.text(kPictureSide, y_, kHeadText, kInk,
              "weights: how many elements have a value, both on a logarithmic scale");
    for (const char* line :
         {"Orange: negative. A column is half a power of two, the middle one zero.",
          "Outliers lie beyond 10 times the root mean square; a normal distribution has a kurtosis of "
          "3."})
      out_.text(kPictureSide, y_ += kRowHigh, kLineText, kInk, line);
    size_t drawn = 0;
    for (const ModelPicture::Histogram& one : p_.histograms) {
      if (one.constant) continue;
      const double wide = (kPictureWide - 2 * kPictureSide - (kAcross - 1) * kHistogramGap) / kAcross;
      if (drawn % kAcross == 0) y_ += drawn == 0 ? 12 : kHistogramHigh + 78;
      histogram(one, kPictureSide + static_cast<double>(drawn++ % kAcross) * (wide + kHistogramGap), wide);
    }
    if (drawn > 0) y_ += kHistogramHigh + 66;
    constants();
  }

  // Lists names of constant tensors, one line for each value that all their elements have.
  void constants() {
    std::map<std::string, std::string> names;
    for (const ModelPicture::Histogram& one : p_.histograms)
      if (one.constant) names[one.facts] += (names[one.facts].empty() ? "" : ", ") + one.name;
    for (const auto& [facts, list] : names) paragraph(facts + ": " + list, kLineText);
  }

  void histogram(const ModelPicture::Histogram& one, double x, double wide) {
    const double top = y_ + 36, bottom = top + kHistogramHigh;
    out_.text(x, y_ + 14, kLineText, kInk, shortened(one.name, wide));
    out_.text(x, y_ + 29, 10, kInk, one.facts);
    const double left = x + 26, column = (wide - 26) / static_cast<double>(axis_.columns());
    const double decades = std::log10(most_) + 0.1;
    for (int power = 0; power <= static_cast<int>(decades); power += decades > 5 ? 2 : 1) {
      const double y = bottom - (power + 0.3) / (decades + 0.3) * kHistogramHigh;
      out_.line(left, y, x + wide, y, kPaper);
      out_.right_text(left - 4, y + 4, 9, kInk, strprintf("1e%d", power));
    }
    const std::vector<double> columns = axis_.pool(one.counts);
    for (size_t i = 0; i < columns.size(); ++i) {
      if (columns[i] == 0) continue;
      const double high = (std::log10(columns[i]) + 0.3) / (decades + 0.3) * kHistogramHigh;
      const auto at = static_cast<int64_t>(i);
      out_.rect(left + static_cast<double>(i) * column, bottom - high, column, high,
                at < axis_.side()   ? kNegative
                : at > axis_.side() ? kBar
                                    : kFlops,
                strprintf("%.0f elements", columns[i]));
    }
    out_.line(left, bottom, x + wide, bottom, kRule);
    marks(left, column, bottom);
  }

  // Marks at powers of ten, as many as have space for their labels.
  void marks(double left, double column, double bottom) {
    const double middle = left + (static_cast<double>(axis_.side()) + 0.5) * column;
    out_.centred_text(middle, bottom + 13, 9, kInk, "0");
    const double outermost = static_cast<double>(axis_.columns()) * column / 2;
    double last = middle;
    for (double power = std::ceil(std::log10(axis_.least())); std::pow(10, power) <= axis_.most(); ++power) {
      const double from_edge = std::log2(axis_.most() / std::pow(10, power)) * ValueHistogram::kPerPower /
                               static_cast<double>(axis_.per_column) * column;
      const double at = outermost - from_edge;
      if (middle + at - last < 34) continue;
      last = middle + at;
      for (const double x : {middle + at, middle - at}) out_.line(x, bottom, x, bottom + 3, kRule);
      out_.centred_text(middle + at, bottom + 13, 9, kInk, strprintf("%g", std::pow(10, power)));
      out_.centred_text(middle - at, bottom + 13, 9, kInk, strprintf("-%g", std::pow(10, power)));
    }
  }

  const ModelPicture& p_;
  Drawing out_;
  HistogramAxis axis_;
  double most_ = 1, y_ = 0;
};

}  // namespace

Drawing model_drawing(const ModelPicture& picture) { return Picture(picture).drawing(); }

}  // namespace ranklab::viz
