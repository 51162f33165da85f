// The colour and letters of an event everywhere: window, SVG, text. The first hues are those of Okabe and Ito (2008),
// in the roles that pipeline figures use: F blue, B green, W orange, optimizer purple. Everything shares one palette of
// meanings: activations, gradients and optimizer states have the colour of the pass that makes them; reductions,
// gathers, exchanges and messages have one colour each. Meanings that share a row can be distinguished with normal
// vision and with the three kinds of colour blindness (palette_test). Colour is never the only cue: every block also
// has letters, every bubble a texture. Thread rule: pure.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "core/trace/event.h"

namespace ranklab::viz {

// 0xRRGGBBAA
using Rgba = uint32_t;

// How an event is painted. One byte, so that rows can store it for each event.
enum class Paint : uint8_t {
  kForward,       // F
  kInputGrad,     // B
  kWeightGrad,    // W
  kBackward,      // BW
  kPair,          // F&BW
  kOptimizer,     // OPT
  kCompute,       // any other compute span
  kPhase,         // a span that encloses others
  kModule,        // the use of a module, inside an action
  kAttention,     // attention to one part of the keys, inside its module
  kComputeBound,  // a kernel, by what limits its speed
  kMemoryBound,
  kLaunchBound,
  kAllReduce,      // AR
  kReduceScatter,  // RS
  kAllGather,      // AG
  kAllToAll,       // A2A
  kBroadcast,      // BC
  kSend,           // SND
  kRecv,           // RCV
  kBarrier,        // BAR
  kCount
};
constexpr size_t kPaints = static_cast<size_t>(Paint::kCount);

Paint paint_of(const Event& event, std::string_view event_name);
// Whether this is a module or kernel, which lies inside an action that is also drawn.
constexpr bool is_detail(Paint paint) { return paint >= Paint::kModule && paint <= Paint::kLaunchBound; }
Rgba colour(Paint paint);
Rgba text_colour(Paint paint);          // readable on colour(paint)
std::string_view letters(Paint paint);  // "F", "AR"; empty for kCompute and kPhase, which show their name
std::string_view letter(Paint paint);   // one column wide, each verb's own; "+" of what has no letters
std::string_view name(Paint paint);     // "forward", "all_reduce": for legends

// The text on a block: "F7", "2F7" where the rank holds several stages, "AR 12" (sequence), "SND 3 dkv" (of context
// parallelism), "q7 k3" (attention), or the event's name.
std::string block_text(const Event& event, std::string_view event_name, bool with_stage);

Rgba axis_colour(Axis axis);
// Colour of what travels: the axis' colour, or a purpose's own; what comes back is the paler of a pair.
Rgba flow_colour(Axis axis, Purpose purpose);
// Colours of ranks beside each other in one picture, by their place there: eight, then from the beginning.
Rgba rank_colour(size_t place);
// Colour of a number format by its bits: the fewer the warmer. Numbers that are no floats are grey.
Rgba precision_colour(int bits);
int float_bits(DType dtype);  // 0: no float

// Bubbles are hatched, each cause (from bubbles.h) with a texture of its own.
enum class BubbleCause : uint8_t {
  kWarmUp,      // before the rank's first work
  kDependency,  // for an action of another rank, whose result comes in a message
  kDrain,       // after the rank's last work
  kExposed,     // for a transfer that compute did not hide
  kStraggler,   // in a collective, for a member that had not posted
  kHost,        // no recorded reason
  kCount
};
constexpr size_t kBubbleCauses = static_cast<size_t>(BubbleCause::kCount);
enum class Texture : uint8_t { kRising, kFalling, kVertical, kHorizontal, kCrossed, kPlain };
Rgba colour(BubbleCause cause);
Texture texture(BubbleCause cause);
std::string_view name(BubbleCause cause);     // "warm-up", "dependency", "drain", "exposed comm", "straggler", "host"
std::string_view letters(BubbleCause cause);  // one character, for text: "." "-" "_" "~" "!" " "

Rgba colour(MemoryCategory category);
std::string hex(Rgba colour);  // "#0072b2", for SVG; without alpha

}  // namespace ranklab::viz
