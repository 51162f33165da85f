#include <algorithm>
#include <cmath>

#include "core/base/text.h"
#include "viz/panels/parts/theme.h"
#include "viz/panels/parts/widgets.h"
#include "viz/panels/stage/stage_view.h"

namespace ranklab::viz {
namespace {

constexpr size_t kManyRooms = 16;
constexpr float kWidest = 9, kThinnest = 1.6f;  // width of a band, before the display's scale

struct FlowCurve {
  ImVec2 a, control, b;
  ImVec2 at(float t) const {
    const float u = 1 - t;
    return {u * u * a.x + 2 * u * t * control.x + t * t * b.x, u * u * a.y + 2 * u * t * control.y + t * t * b.y};
  }
  float length() const {
    float sum = 0;
    ImVec2 last = a;
    for (int i = 1; i <= 8; ++i) {
      const ImVec2 next = at(static_cast<float>(i) / 8);
      sum += std::hypot(next.x - last.x, next.y - last.y);
      last = next;
    }
    return sum;
  }
};

FlowCurve curve_of(const StageView& view, const StagePath& path) {
  return {view.at(path.x0, path.y0), view.at(path.control_x, path.control_y), view.at(path.x1, path.y1)};
}

// How far a flow has come at the time, 0 to 1.
float progress(const StageFlow& flow, int64_t time_ns) {
  if (flow.range.length_ns() <= 0) return 0.5f;
  const double share = static_cast<double>(time_ns - flow.range.begin_ns) / static_cast<double>(flow.range.length_ns());
  return static_cast<float>(std::clamp(share, 0.0, 1.0));
}

// 1 while the flow is on its way; afterwards it fades to 0.
float brightness(const StageView& view, const StageFlow& flow) {
  const int64_t over = view.time_ns - flow.range.end_ns, linger = view.script.linger_ns();
  if (over <= 0 || linger <= 0) return 1;
  return std::clamp(1 - static_cast<float>(static_cast<double>(over) / static_cast<double>(linger)), 0.f, 1.f) * 0.6f;
}

void dashes(ImDrawList& draw, const FlowCurve& curve, ImU32 color, float width) {
  const int parts = std::max(3, static_cast<int>(curve.length() / scaled(9)));
  for (int i = 0; i < parts; i += 2)
    draw.AddLine(curve.at(static_cast<float>(i) / static_cast<float>(parts)),
                 curve.at(static_cast<float>(i + 1) / static_cast<float>(parts)), color, width);
}

void particles(ImDrawList& draw, const FlowCurve& curve, ImU32 color, float radius, float progress) {
  const int count = std::max(2, static_cast<int>(curve.length() / (radius * 5 + scaled(6))));
  // Each particle moves to the place of the next one three times while the flow lasts.
  const float phase = std::fmod(progress * 3, 1.f);
  for (int i = 0; i < count; ++i)
    draw.AddCircleFilled(curve.at((static_cast<float>(i) + phase) / static_cast<float>(count)), radius, color, 12);
}

// A microbatch on its way, drawn as a small square with its number. RETURNS: the square.
ImVec4 token(ImDrawList& draw, const FlowCurve& curve, const StageFlow& flow, float progress, float alpha,
             float share) {
  const ImVec2 at = curve.at(0.12f + 0.76f * progress);
  const float half = ImGui::GetFontSize() * 0.62f * share;
  const MemoryCategory what = flow.gradients ? MemoryCategory::kGradients : MemoryCategory::kActivations;
  const ImU32 fill = with_alpha(im_color(colour(what)), static_cast<int>(255 * alpha));
  const Paint paint = flow.gradients ? Paint::kInputGrad : Paint::kForward;
  const std::string words = std::to_string(flow.microbatch);
  const float wide = std::max(half, text_width(words) * share / 2 + scaled(3));
  const ImVec2 low(at.x - wide, at.y - half), high(at.x + wide, at.y + half);
  draw.AddRectFilled(low, high, fill, scaled(4));
  draw.AddRect(low, high, with_alpha(theme::kOutline, static_cast<int>(220 * alpha)), scaled(4), scaled(1.2f));
  centred_text(draw, low, {2 * wide, 2 * half}, im_color(text_colour(paint)), words, 0.9f * share);
  return {low.x, low.y, high.x, high.y};
}

bool overlap(const ImVec4& a, const ImVec4& b) { return a.x < b.z && b.x < a.z && a.y < b.w && b.y < a.w; }

}  // namespace

ImU32 flow_color(const StageFlowKind& kind) {
  const ImU32 color = im_color(kind.colour);
  return theme_kind() == ThemeKind::kLight ? blend(color, IM_COL32(0, 0, 0, 255), 0.22f) : color;
}

float badge_width(float font, const char* words) {
  return ImGui::GetFont()->CalcTextSizeA(font, FLT_MAX, 0, words).x + font * 0.7f;
}

float draw_badge(ImDrawList& draw, ImVec2 at, float font, const char* words, ImU32 fill) {
  const float width = badge_width(font, words), height = font * 1.25f;
  draw.AddRectFilled(at, {at.x + width, at.y + height}, fill, font * 0.3f);
  const ImU32 light = IM_COL32(255, 255, 255, 255), dark = IM_COL32(16, 20, 26, 255);
  draw.AddText(ImGui::GetFont(), font, {at.x + font * 0.35f, at.y + font * 0.12f},
               contrast(light, fill) > contrast(dark, fill) ? light : dark, words);
  return width;
}

void FlowPainter::draw(ImDrawList& draw, const StageView& view, const std::vector<bool>& shown) {
  flows_at(view.script, view.time_ns, view.script.linger_ns(), flows_);
  taken_.clear();
  labelled_.clear();
  for (const uint32_t index : flows_) ways(draw, view, view.script.flows[index], shown);
  for (const uint32_t index : flows_) {
    const StageFlow& flow = view.script.flows[index];
    if (flow.range.end_ns >= view.time_ns && flow.dtype != DType::kOther) label(draw, view, flow);
  }
}

void FlowPainter::ways(ImDrawList& draw, const StageView& view, const StageFlow& flow, const std::vector<bool>& shown) {
  const ImU32 color = flow_color(view.script.kinds[flow.kind]);
  const float bright = brightness(view, flow), far = progress(flow, view.time_ns);
  const bool over = flow.range.end_ns < view.time_ns;
  for (const StagePair& pair : view.script.pair_sets[flow.pairs]) {
    const StagePath& path = view.script.paths[pair.path];
    const float seen = bright * (shown[path.from] || shown[path.to] ? 1 : 0.15f);
    const FlowCurve curve = curve_of(view, path);
    const float width = scaled(kThinnest + (kWidest - kThinnest) * flow.width * pair.width);
    const ImU32 band = with_alpha(color, static_cast<int>(105 * seen));
    if (path.between_nodes)
      dashes(draw, curve, band, width);
    else
      draw.AddBezierQuadratic(curve.a, curve.control, curve.b, band, width);
    if (flow.microbatch >= 0) {
      taken_.push_back(
          token(draw, curve, flow, far, over ? seen : 1, view.script.rooms.size() > kManyRooms ? 0.75f : 1));
    } else if (!over) {
      particles(draw, curve, with_alpha(color, static_cast<int>(255 * seen)), std::max(width * 0.42f, scaled(1.5f)),
                far);
    }
  }
}

// Draws the number format that is sent, once for each flow, if it covers no other label and no microbatch: on the first
// curve if there are few, at the centre of all if there are many. Between many rooms there is only space for one label
// of each kind.
void FlowPainter::label(ImDrawList& draw, const StageView& view, const StageFlow& flow) {
  if (view.script.rooms.size() > kManyRooms) {
    const std::pair<uint32_t, DType> key(flow.kind, flow.dtype);
    if (std::find(labelled_.begin(), labelled_.end(), key) != labelled_.end()) return;
    labelled_.push_back(key);
  }
  const std::vector<StagePair>& pairs = view.script.pair_sets[flow.pairs];
  const std::string words(name(flow.dtype));
  const float font = ImGui::GetFontSize() * 0.78f;
  ImVec2 centre = curve_of(view, view.script.paths[pairs.front().path]).at(0.5f);
  if (pairs.size() > 8) {
    centre = {0, 0};
    for (const StagePair& pair : pairs) {
      const ImVec2 middle = curve_of(view, view.script.paths[pair.path]).at(0.5f);
      centre = {centre.x + middle.x / static_cast<float>(pairs.size()),
                centre.y + middle.y / static_cast<float>(pairs.size())};
    }
  }
  const float width = badge_width(font, words.c_str()), height = font * 1.25f;
  std::vector<ImVec2> places = {centre};
  if (flow.microbatch >= 0) {  // next to the token, or below it if the curve is short
    const FlowCurve way = curve_of(view, view.script.paths[pairs.front().path]);
    const bool begins = progress(flow, view.time_ns) < 0.5f;
    places = {{centre.x, centre.y + ImGui::GetFontSize() * 1.3f}};
    if (way.length() > 6 * width) places = {way.at(begins ? 0.75f : 0.25f), way.at(begins ? 0.62f : 0.38f)};
  }
  for (const ImVec2 place : places) {
    const ImVec2 at(std::round(place.x - width / 2), std::round(place.y - height / 2));
    const ImVec4 box(at.x - 2, at.y - 2, at.x + width + 2, at.y + height + 2);
    if (std::any_of(taken_.begin(), taken_.end(), [&](const ImVec4& other) { return overlap(box, other); })) continue;
    taken_.push_back(box);
    draw_badge(draw, at, font, words.c_str(), im_color(precision_colour(float_bits(flow.dtype))));
    return;
  }
}

std::optional<uint32_t> FlowPainter::hit(const StageView& view, ImVec2 point) const {
  std::optional<uint32_t> nearest;
  float least = scaled(7);
  for (const uint32_t index : flows_) {
    for (const StagePair& pair : view.script.pair_sets[view.script.flows[index].pairs]) {
      const FlowCurve curve = curve_of(view, view.script.paths[pair.path]);
      for (int i = 0; i <= 16; ++i) {
        const ImVec2 at = curve.at(static_cast<float>(i) / 16);
        const float distance = std::hypot(at.x - point.x, at.y - point.y);
        if (distance >= least) continue;
        least = distance;
        nearest = index;
      }
    }
  }
  return nearest;
}

}  // namespace ranklab::viz
