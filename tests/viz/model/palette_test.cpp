// Colours that share a row or a plot can be told apart: CIEDE2000 (Sharma, Wu, Dalal 2005) of what a person sees, with
// normal vision and with each kind of dichromacy in full (Machado, Oliveira, Fernandes 2009).
#include "viz/model/svg/palette.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <vector>

namespace ranklab::viz {
namespace {

using Triple = std::array<double, 3>;

struct Vision {
  const char* name;
  std::array<Triple, 3> matrix;  // of linear RGB
};
constexpr std::array<Vision, 4> kVisions = {
    {{"normal", {{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}}},
     {"protanopia",
      {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}}},
     {"deuteranopia",
      {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}}},
     {"tritanopia",
      {{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}}}}};

Triple times(const std::array<Triple, 3>& matrix, const Triple& v) {
  Triple out{};
  for (size_t i = 0; i < 3; ++i) out[i] = matrix[i][0] * v[0] + matrix[i][1] * v[1] + matrix[i][2] * v[2];
  return out;
}

Triple linear(Rgba colour) {
  Triple out{};
  for (size_t i = 0; i < 3; ++i) {
    const double c = (colour >> (24 - 8 * i) & 255) / 255.0;
    out[i] = c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  }
  return out;
}

// CIE L*a*b* under D65.
Triple lab(Rgba colour, const Vision& vision) {
  Triple rgb = times(vision.matrix, linear(colour));
  for (double& c : rgb) c = std::clamp(c, 0.0, 1.0);
  constexpr std::array<Triple, 3> kToXyz = {
      {{0.4124564, 0.3575761, 0.1804375}, {0.2126729, 0.7151522, 0.0721750}, {0.0193339, 0.1191920, 0.9503041}}};
  const Triple xyz = times(kToXyz, rgb);
  const auto f = [](double t) { return t > 216.0 / 24389 ? std::cbrt(t) : (24389.0 / 27 * t + 16) / 116; };
  const double x = f(xyz[0] / 0.95047), y = f(xyz[1]), z = f(xyz[2] / 1.08883);
  return {116 * y - 16, 500 * (x - y), 200 * (y - z)};
}

double degrees(double radians) { return radians * 180 / std::numbers::pi; }
double sine(double degree) { return std::sin(degree * std::numbers::pi / 180); }
double cosine(double degree) { return std::cos(degree * std::numbers::pi / 180); }

double ciede2000(const Triple& one, const Triple& two) {
  const double mean_c = (std::hypot(one[1], one[2]) + std::hypot(two[1], two[2])) / 2;
  const double g = 0.5 * (1 - std::sqrt(std::pow(mean_c, 7) / (std::pow(mean_c, 7) + std::pow(25.0, 7))));
  const double a1 = one[1] * (1 + g), a2 = two[1] * (1 + g);
  const double c1 = std::hypot(a1, one[2]), c2 = std::hypot(a2, two[2]);
  const auto hue = [](double b, double a) { return std::fmod(degrees(std::atan2(b, a)) + 360, 360); };
  const double h1 = c1 > 0 ? hue(one[2], a1) : 0, h2 = c2 > 0 ? hue(two[2], a2) : 0;
  const double turn = c1 * c2 > 0 ? std::fmod(h2 - h1 + 540, 360) - 180 : 0;
  const double dh = 2 * std::sqrt(c1 * c2) * sine(turn / 2);
  const double l = (one[0] + two[0]) / 2, c = (c1 + c2) / 2;
  double h = h1 + h2;
  if (c1 * c2 > 0) {
    if (std::abs(h1 - h2) > 180) h += h < 360 ? 360 : -360;
    h /= 2;
  }
  const double t =
      1 - 0.17 * cosine(h - 30) + 0.24 * cosine(2 * h) + 0.32 * cosine(3 * h + 6) - 0.2 * cosine(4 * h - 63);
  const double sl = 1 + 0.015 * std::pow(l - 50, 2) / std::sqrt(20 + std::pow(l - 50, 2));
  const double sc = 1 + 0.045 * c, sh = 1 + 0.015 * c * t;
  const double rc = 2 * std::sqrt(std::pow(c, 7) / (std::pow(c, 7) + std::pow(25.0, 7)));
  const double rt = -sine(60 * std::exp(-std::pow((h - 275) / 25, 2))) * rc;
  const double x = (two[0] - one[0]) / sl, y = (c2 - c1) / sc, z = dh / sh;
  return std::sqrt(x * x + y * y + z * z + rt * y * z);
}

// Below 2.3 nobody sees a difference side by side; 11 is recognizable without the other one next to it.
constexpr double kLeast = 11;

// Every two different colours of the set, for every kind of vision.
void expect_apart(const std::map<std::string, Rgba>& colours) {
  for (auto one = colours.begin(); one != colours.end(); ++one)
    for (auto two = std::next(one); two != colours.end(); ++two) {
      if (one->second == two->second) continue;
      for (const Vision& vision : kVisions)
        EXPECT_GE(ciede2000(lab(one->second, vision), lab(two->second, vision)), kLeast)
            << one->first << " and " << two->first << ", " << vision.name;
    }
}

std::map<std::string, Rgba> paints(std::initializer_list<Paint> all) {
  std::map<std::string, Rgba> colours;
  for (const Paint paint : all) colours[std::string(name(paint))] = colour(paint);
  return colours;
}

// Rows of the supplementary data of Sharma et al.
TEST(Palette, DistanceIsCiede2000) {
  EXPECT_NEAR(ciede2000({50, 2.6772, -79.7751}, {50, 0, -82.7485}), 2.0425, 1e-4);
  EXPECT_NEAR(ciede2000({50, 2.5, 0}, {56, -27, -3}), 31.9030, 1e-4);
  EXPECT_NEAR(ciede2000({6.7747, -0.2908, -2.4247}, {5.8714, -0.0985, -2.2286}), 0.6377, 1e-4);
  EXPECT_NEAR(ciede2000({2.0776, 0.0795, -1.1350}, {0.9033, -0.0636, -0.5514}), 0.9082, 1e-4);
}

TEST(Palette, ActionsCanBeToldApart) {
  expect_apart(paints({Paint::kForward, Paint::kInputGrad, Paint::kWeightGrad, Paint::kBackward, Paint::kPair,
                       Paint::kOptimizer, Paint::kCompute}));
}

TEST(Palette, ModulesAndKernelsCanBeToldApart) {
  expect_apart(
      paints({Paint::kModule, Paint::kAttention, Paint::kComputeBound, Paint::kMemoryBound, Paint::kLaunchBound}));
}

TEST(Palette, CallsAndPhasesCanBeToldApart) {
  expect_apart(
      paints({Paint::kAllReduce, Paint::kAllGather, Paint::kAllToAll, Paint::kSend, Paint::kPhase, Paint::kOptimizer}));
}

TEST(Palette, RanksCanBeToldApart) {
  std::map<std::string, Rgba> colours;
  for (size_t place = 0; place < 8; ++place) colours[std::to_string(place)] = rank_colour(place);
  expect_apart(colours);
  EXPECT_EQ(rank_colour(8), rank_colour(0));
}

TEST(Palette, AttentionIsNamedByItsChunks) {
  const Event event{.kind = EventKind::kAttention};
  EXPECT_EQ(block_text(event, "attention q7 k3 backward", false), "q7 k3");
  EXPECT_EQ(block_text(event, "attention all positions", false), "all positions");
}

TEST(Palette, MessagesOfTheRingSayWhatTheyCarry) {
  Event event{.kind = EventKind::kCollective, .verb = Verb::kSend, .sequence = 3};
  EXPECT_EQ(block_text(event, "send", false), "SND 3");
  event.purpose = Purpose::kKeyValue;
  EXPECT_EQ(block_text(event, "send", false), "SND 3 kv");
  event.purpose = Purpose::kKeyValueGrad;
  EXPECT_EQ(block_text(event, "send", false), "SND 3 dkv");
  event.verb = Verb::kAllToAll;
  event.purpose = Purpose::kHeads;
  EXPECT_EQ(block_text(event, "all_to_all", false), "A2A 3 heads");
}

TEST(Palette, VerbsThatDoTheSameShareAColour) {
  EXPECT_EQ(colour(Paint::kAllReduce), colour(Paint::kReduceScatter));
  EXPECT_EQ(colour(Paint::kAllGather), colour(Paint::kBroadcast));
  EXPECT_EQ(colour(Paint::kSend), colour(Paint::kRecv));
}

TEST(Palette, MemoryHasTheColourOfThePassThatMakesIt) {
  EXPECT_EQ(colour(MemoryCategory::kActivations), colour(Paint::kForward));
  EXPECT_EQ(colour(MemoryCategory::kGradients), colour(Paint::kInputGrad));
  EXPECT_EQ(colour(MemoryCategory::kOptimizer), colour(Paint::kOptimizer));
  std::map<std::string, Rgba> colours;
  for (size_t c = 0; c < static_cast<size_t>(MemoryCategory::kCount); ++c)
    colours[std::to_string(c)] = colour(static_cast<MemoryCategory>(c));
  expect_apart(colours);
}

// Causes are drawn pale, so that hues hardly show: textures tell them apart.
TEST(Palette, CausesOfBubblesHaveTexturesOfTheirOwn) {
  for (size_t one = 0; one < kBubbleCauses; ++one)
    for (size_t two = one + 1; two < kBubbleCauses; ++two)
      EXPECT_NE(texture(static_cast<BubbleCause>(one)), texture(static_cast<BubbleCause>(two))) << one << " " << two;
}

}  // namespace
}  // namespace ranklab::viz
