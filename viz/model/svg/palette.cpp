#include "viz/model/svg/palette.h"

#include <array>

#include "core/base/kernel_bound.h"
#include "core/base/text.h"
#include "core/trace/attention_event.h"

namespace ranklab::viz {
namespace {

struct PaintRow {
  Rgba colour;
  Rgba text;
  std::string_view letters;
  std::string_view letter;
  std::string_view name;
};

constexpr Rgba kLight = 0xFFFFFFFF, kDark = 0x14181DFF;

// Colours that several things share: what a pass computes is stored in its colour, and verbs that do the same share
// one.
constexpr Rgba kForward = 0x206AD0FF, kInputGrad = 0x3CB47EFF, kOptimizer = 0xC370A0FF, kReduction = 0x3F7D77FF,
               kGather = 0x85C3B5FF, kMessage = 0xE0C870FF, kNoData = 0x4A5261FF;

constexpr std::array<PaintRow, kPaints> kPaintRows = {{
    {kForward, kLight, "F", "F", "forward"},
    {kInputGrad, kDark, "B", "B", "input gradient"},
    {0xEDA40EFF, kDark, "W", "W", "weight gradient"},
    {0x0A854DFF, kLight, "BW", "B", "backward"},
    {0x6ECCFFFF, kDark, "F&BW", "&", "forward and backward at once"},
    {kOptimizer, kDark, "OPT", "O", "optimizer"},
    {0xB2B6BFFF, kDark, "", "+", "compute"},
    {kNoData, kLight, "", "+", "phase"},
    {0xABB2BEFF, kDark, "", "+", "module"},
    {0xE6E1F7FF, kDark, "", "+", "attention to some keys"},
    {0xCEB86CFF, kDark, "", "+", "kernel, bound by compute"},
    {0x82A3D9FF, kDark, "", "+", "kernel, bound by memory"},
    {0xD58780FF, kDark, "", "+", "kernel, bound by its launch"},
    {kReduction, kLight, "AR", "R", "all_reduce"},
    {kReduction, kLight, "RS", "S", "reduce_scatter"},
    {kGather, kDark, "AG", "G", "all_gather"},
    {0xAA84E7FF, kDark, "A2A", "X", "all_to_all"},
    {kGather, kDark, "BC", "C", "broadcast"},
    {kMessage, kDark, "SND", ">", "send"},
    {kMessage, kDark, "RCV", "<", "recv"},
    {kNoData, kLight, "BAR", "|", "barrier"},
}};

struct CauseRow {
  Rgba colour;
  Texture texture;
  std::string_view letters;
  std::string_view name;
};

// What the schedule leaves idle is grey; calls and members that come late have colours of their own.
constexpr Rgba kIdle = 0xB9C2CEFF;
constexpr std::array<CauseRow, kBubbleCauses> kCauseRows = {{
    {kIdle, Texture::kFalling, ".", "warm-up"},
    {kIdle, Texture::kRising, "-", "dependency"},
    {kIdle, Texture::kVertical, "_", "drain"},
    {kGather, Texture::kCrossed, "~", "exposed comm"},
    {0xF08A78FF, Texture::kHorizontal, "!", "straggler"},
    {kIdle, Texture::kPlain, " ", "host"},
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

// "q7 k3" of "attention q7 k3 backward".
std::string key_part_text(std::string_view name) {
  if (name.starts_with(kAttentionEvent)) name.remove_prefix(kAttentionEvent.size());
  for (const std::string_view pass : kAttentionPasses)
    if (!pass.empty() && name.ends_with(pass)) name.remove_suffix(pass.size());
  return std::string(name);
}

}  // namespace

Paint paint_of(const Event& event, std::string_view event_name) {
  if (event.kind == EventKind::kCollective) return paint_of_verb(event.verb);
  if (event.kind == EventKind::kCompute) return paint_of_compute(event_name);
  if (event.kind == EventKind::kModule) return Paint::kModule;
  if (event.kind == EventKind::kAttention) return Paint::kAttention;
  if (event.kind == EventKind::kKernel) return paint_of_kernel(event.tag);
  return event_name.starts_with("optimizer") ? Paint::kOptimizer : Paint::kPhase;
}

Rgba colour(Paint paint) { return row(paint).colour; }
Rgba text_colour(Paint paint) { return row(paint).text; }
std::string_view letters(Paint paint) { return row(paint).letters; }
std::string_view letter(Paint paint) { return row(paint).letter; }
std::string_view name(Paint paint) { return row(paint).name; }

std::string block_text(const Event& event, std::string_view event_name, bool with_stage) {
  const std::string_view word = letters(paint_of(event, event_name));
  if (event.kind == EventKind::kCollective) {
    std::string text(word);
    if (event.sequence >= 0) text += " " + std::to_string(event.sequence);
    // Messages of one ring that differ in nothing else that is seen.
    if (event.purpose >= Purpose::kKeyValue) (text += ' ') += name(event.purpose);
    return text;
  }
  if (event.kind == EventKind::kModule) return module_text(event_name);
  if (event.kind == EventKind::kAttention) return key_part_text(event_name);
  if (event.kind != EventKind::kCompute || word.empty()) return std::string(event_name);
  std::string text = with_stage && event.stage >= 0 ? std::to_string(event.stage) : "";
  text += word;
  if (event.microbatch >= 0) text += std::to_string(event.microbatch);
  return text;
}

Rgba axis_colour(Axis axis) {
  constexpr std::array<Rgba, static_cast<size_t>(Axis::kCount)> kColours = {
      0x999999FF, 0x56B4E9FF, 0xCC79A7FF, 0xE69F00FF, 0x009E73FF, 0xD55E00FF, 0x0072B2FF, 0xF0E442FF,
      0xB39B00FF, 0xE69F00FF, 0xB8860BFF, 0xF0E442FF, 0xC9B458FF, 0x8AD1F5FF, 0xCC79A7FF, 0xB0568AFF};
  return kColours[static_cast<size_t>(axis)];
}

Rgba flow_colour(Axis axis, Purpose purpose) {
  constexpr std::array<Rgba, static_cast<size_t>(Purpose::kCount)> kColours = {
      0, 0x8E98A6FF, 0xE4572EFF, 0xF7A072FF, 0xC9A7F5FF, 0x8B4FD9FF, 0xD98BB9FF, 0x9C6ADEFF, 0xCC79A7FF};
  return purpose == Purpose::kOther ? axis_colour(axis) : kColours[static_cast<size_t>(purpose)];
}

Rgba rank_colour(size_t place) {
  constexpr std::array<Rgba, 8> kColours = {0x4659D4FF, 0xFFA93BFF, 0x289671FF, 0xAB769CFF,
                                            0x7BD0F4FF, 0xAF3A2CFF, 0xECE6B4FF, 0x7D516DFF};
  return kColours[place % kColours.size()];
}

Rgba precision_colour(int bits) {
  if (bits <= 0) return 0x7C8594FF;
  if (bits <= 4) return 0xE0457BFF;
  if (bits <= 8) return 0xF28C28FF;
  return bits <= 16 ? 0x2FA7A0FF : bits <= 32 ? 0x5B7FB8FF : 0x8A6FB0FF;
}

int float_bits(DType dtype) {
  const bool is_float = dtype <= DType::kFloat8;
  return is_float ? static_cast<int>(size_bytes(dtype)) * 8 : 0;
}

Rgba colour(BubbleCause cause) { return kCauseRows[static_cast<size_t>(cause)].colour; }
Texture texture(BubbleCause cause) { return kCauseRows[static_cast<size_t>(cause)].texture; }
std::string_view name(BubbleCause cause) { return kCauseRows[static_cast<size_t>(cause)].name; }
std::string_view letters(BubbleCause cause) { return kCauseRows[static_cast<size_t>(cause)].letters; }

Rgba colour(MemoryCategory category) {
  constexpr std::array<Rgba, static_cast<size_t>(MemoryCategory::kCount)> kColours = {
      0x9A8700FF, kInputGrad, kOptimizer, kForward, 0xE8DF39FF, 0x737479FF};
  return kColours[static_cast<size_t>(category)];
}

std::string hex(Rgba rgba) { return strprintf("#%06x", rgba >> 8U); }

}  // namespace ranklab::viz
