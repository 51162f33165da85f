// How an event is spelled in the file, shared by writer and reader: the integer fields that go to `args` when they
// differ from an Event's defaults. Thread rule: constant data.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "core/trace/event.h"

namespace ranklab {

// The "cat" field of a slice or instant.
constexpr std::string_view category(EventKind kind) {
  constexpr std::array<std::string_view, 8> kCategories = {"compute", "collective", "phase",  "instant",
                                                           "counter", "module",     "kernel", "attention"};
  return kCategories[static_cast<size_t>(kind)];
}
// The kind of slice that "cat" names; nothing for an unknown name.
constexpr std::optional<EventKind> slice_kind(std::string_view text) {
  for (const EventKind kind : {EventKind::kCompute, EventKind::kCollective, EventKind::kPhase, EventKind::kModule,
                               EventKind::kKernel, EventKind::kAttention})
    if (category(kind) == text) return kind;
  return {};
}

// A rank's process in the file. Processes begin at 1, because Perfetto draws process 0 as the kernel's idle process
// (google/perfetto#394). The header lists each rank's process; files of earlier versions, without that list, use the
// rank itself.
constexpr int64_t process_id(int rank) { return int64_t{rank} + 1; }

// Name of the metadata event with the number of events that a rank dropped after the header was written.
inline constexpr std::string_view kDroppedEvent = "ranklab_dropped";

using EventField = std::variant<int32_t Event::*, int64_t Event::*>;
struct NamedField {
  std::string_view key;
  EventField field;
};

inline constexpr std::array<NamedField, 15> kArgFields = {{
    {"step", &Event::step},
    {"microbatch", &Event::microbatch},
    {"stage", &Event::stage},
    {"peer", &Event::peer},
    {"tag", &Event::tag},
    {"seq", &Event::sequence},
    {"posted_ns", &Event::virtual_posted_ns},
    {"matched_ns", &Event::virtual_matched_ns},
    {"first_byte_ns", &Event::virtual_first_byte_ns},
    {"exposed_ns", &Event::virtual_exposed_ns},
    {"peer_wait_ns", &Event::virtual_peer_wait_ns},
    {"logical_bytes", &Event::logical_bytes},
    {"algorithm_bytes", &Event::algorithm_bytes},
    {"wire_bytes", &Event::wire_bytes},
    {"wall_matched_ns", &Event::wall_matched_ns},
}};

inline constexpr std::array<NamedField, 2> kVirtualSpan = {
    {{"virtual_begin_ns", &Event::virtual_begin_ns}, {"virtual_end_ns", &Event::virtual_end_ns}}};
inline constexpr std::array<NamedField, 2> kWallSpan = {
    {{"wall_begin_ns", &Event::wall_begin_ns}, {"wall_end_ns", &Event::wall_end_ns}}};

}  // namespace ranklab
