#include "viz/model/palette.h"

#include <array>

#include "core/base/kernel_bound.h"
#include "core/base/text.h"

namespace ranklab::viz {
namespace {

struct PaintRow {
  Rgba colour;
  Rgba text;
  std::string_view letters;
  std::string_view name;
};

constexpr Rgba kLight = 0xFFFFFFFF, kDark = 0x14181DFF;

constexpr std::array<PaintRow, kPaints> kPaintRows = {{
    {0x0072B2FF, kLight, "F", "forward"},
    {0x2FB58AFF, kDark, "B", "input gradient"},
    {0xE69F00FF, kDark, "W", "weight gradient"},
    {0x008A66FF, kLight, "BW", "backward"},
    {0x56B4E9FF, kDark, "F&BW", "forward and backward at once"},
    {0xCC79A7FF, kDark, "OPT", "optimizer"},
    {0x7D8FA9FF, kDark, "", "compute"},
    {0x4A5261FF, kLight, "", "phase"},
    {0xA9B4C4FF, kDark, "", "module"},
    {0xC7B36AFF, kDark, "", "kernel, bound by compute"},
    {0xC3C9D2FF, kDark, "", "kernel, bound by memory"},
    {0xD9A5A0FF, kDark, "", "kernel, bound by its launch"},
    {0x4F8A8BFF, kLight, "AR", "all_reduce"},
    {0x4C7488FF, kLight, "RS", "reduce_scatter"},
    {0x7FAFAAFF, kDark, "AG", "all_gather"},
    {0x356A70FF, kLight, "A2A", "all_to_all"},
    {0x97B5B2FF, kDark, "BC", "broadcast"},
    {0x6790A0FF, kDark, "SND", "send"},
    {0x8FB3C2FF, kDark, "RCV", "recv"},
    {0x7A8288FF, kLight, "BAR", "barrier"},
}};

struct CauseRow {
  Rgba colour;
  std::string_view letters;
  std::string_view name;
};

constexpr std::array<CauseRow, kBubbleCauses> kCauseRows = {{
    {0xB5C7D6FF, ".", "warm-up"},
    {0xD9C9A8FF, "-", "dependency"},
    {0xC6BCD8FF, "_", "drain"},
    {0x9CC9C2FF, "~", "exposed comm"},
    {0xE3A89CFF, "!", "straggler"},
    {0xBFBFBFFF, " ", "host"},
}};

const PaintRow& row(Paint paint) { return kPaintRows[static_cast<size_t>(paint)]; }

Paint paint_of_verb(Verb verb) {
  switch (verb) {
    case Verb::kAllReduce:
      return Paint::kAllReduce;
    case Verb::kReduceScatter:
      return Paint::kReduceScatter;
    case Verb::kAllGather:
      return Paint::kAllGather;
    case Verb::kAllToAll:
      return Paint::kAllToAll;
    case Verb::kBroadcast:
      return Paint::kBroadcast;
    case Verb::kSend:
      return Paint::kSend;
    case Verb::kRecv:
      return Paint::kRecv;
    case Verb::kBarrier:
    case Verb::kCount:
      break;
  }
  return Paint::kBarrier;
}

Paint paint_of_compute(std::string_view name) {
  for (const Paint paint : {Paint::kForward, Paint::kInputGrad, Paint::kWeightGrad, Paint::kBackward, Paint::kPair}) {
    if (name == row(paint).letters) return paint;
  }
  return name.starts_with("optimizer") || name == "OPT" ? Paint::kOptimizer : Paint::kCompute;
}

Paint paint_of_kernel(int bound) {
  if (bound == static_cast<int>(KernelBound::kCompute)) return Paint::kComputeBound;
  return bound == static_cast<int>(KernelBound::kMemory) ? Paint::kMemoryBound : Paint::kLaunchBound;
}

// "attention" of "layers.3.attention backward": the row above says where it is. "layer 3" of "layers.3".
std::string module_text(std::string_view path) {
  path = path.substr(0, path.find(' '));
  const size_t dot = path.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? path : path.substr(dot + 1);
  if (!last.empty() && last[0] >= '0' && last[0] <= '9')
    return (path.starts_with("layers.") ? "layer " : std::string(path.substr(0, dot)) + " ") + std::string(last);
  return std::string(last);
}

}  // namespace

Paint paint_of(const Event& event, std::string_view event_name) {
  if (event.kind == EventKind::kCollective) return paint_of_verb(event.verb);
  if (event.kind == EventKind::kCompute) return paint_of_compute(event_name);
  if (event.kind == EventKind::kModule) return Paint::kModule;
  if (event.kind == EventKind::kKernel) return paint_of_kernel(event.tag);
  return event_name.starts_with("optimizer") ? Paint::kOptimizer : Paint::kPhase;
}

Rgba colour(Paint paint) { return row(paint).colour; }
Rgba text_colour(Paint paint) { return row(paint).text; }
std::string_view letters(Paint paint) { return row(paint).letters; }
std::string_view name(Paint paint) { return row(paint).name; }

std::string block_text(const Event& event, std::string_view event_name, bool with_stage) {
  const std::string_view word = letters(paint_of(event, event_name));
  if (event.kind == EventKind::kCollective) {
    return event.sequence >= 0 ? std::string(word) + " " + std::to_string(event.sequence) : std::string(word);
  }
  if (event.kind == EventKind::kModule) return module_text(event_name);
  if (event.kind != EventKind::kCompute || word.empty()) return std::string(event_name);
  std::string text = with_stage && event.stage >= 0 ? std::to_string(event.stage) : "";
  text += word;
  if (event.microbatch >= 0) text += std::to_string(event.microbatch);
  return text;
}

Rgba axis_colour(Axis axis) {
  constexpr std::array<Rgba, static_cast<size_t>(Axis::kCount)> kColours = {
      0x999999FF, 0x56B4E9FF, 0xCC79A7FF, 0xE69F00FF, 0x009E73FF, 0xD55E00FF, 0x0072B2FF,
      0xF0E442FF, 0xB39B00FF, 0xE69F00FF, 0xB8860BFF, 0xF0E442FF, 0xC9B458FF, 0x8AD1F5FF};
  return kColours[static_cast<size_t>(axis)];
}

Rgba colour(BubbleCause cause) { return kCauseRows[static_cast<size_t>(cause)].colour; }
std::string_view name(BubbleCause cause) { return kCauseRows[static_cast<size_t>(cause)].name; }
std::string_view letters(BubbleCause cause) { return kCauseRows[static_cast<size_t>(cause)].letters; }

Rgba colour(MemoryCategory category) {
  constexpr std::array<Rgba, static_cast<size_t>(MemoryCategory::kCount)> kColours = {
      0x0072B2FF, 0x009E73FF, 0xCC79A7FF, 0xE69F00FF, 0x56B4E9FF, 0x999999FF};
  return kColours[static_cast<size_t>(category)];
}

std::string hex(Rgba rgba) { return strprintf("#%06x", rgba >> 8U); }

}  // namespace ranklab::viz
