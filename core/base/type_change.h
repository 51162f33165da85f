// The type of a tensor over each mesh axis as a collective takes it and as it leaves it, where types are followed
// (core/spmd): in a word, so that an event can carry it. Text: "partial -> replicated over tp, varying over dp".
// Torch-free. Thread rule: values.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/vocabulary.h"

namespace ranklab {

enum class AxisType : uint8_t { kUnknown, kReplicated, kVarying, kPartial, kCount };
constexpr std::string_view name(AxisType type) {
  constexpr std::array<std::string_view, 4> kNames = {"unknown", "replicated", "varying", "partial"};
  return kNames[static_cast<size_t>(type)];
}

class TypeChange {
 public:
  // The axes that a user sets, in the order in which they are told. The others are parts or products of these.
  static constexpr std::array<Axis, 7> kAxes = {Axis::kTp, Axis::kCp,  Axis::kDp, Axis::kPp,
                                                Axis::kEp, Axis::kEtp, Axis::kEdp};
  static constexpr uint32_t kEnd = 1U << (4 * kAxes.size());

  TypeChange() = default;
  // REQUIRES: bits < kEnd.
  explicit constexpr TypeChange(uint32_t bits) : bits_(bits) {}

  // REQUIRES: an axis of kAxes.
  void set(Axis axis, AxisType before, AxisType after);
  AxisType before(Axis axis) const;
  AxisType after(Axis axis) const;

  constexpr bool known() const { return bits_ != 0; }  // over any axis
  constexpr uint32_t bits() const { return bits_; }
  // What both say: the axes over which they differ are unknown.
  TypeChange common(const TypeChange& other) const;

  std::string text() const;
  static std::optional<TypeChange> parsed(std::string_view text);  // nothing: not what text() makes

  bool operator==(const TypeChange&) const = default;

 private:
  uint32_t bits_ = 0;
};

}  // namespace ranklab
