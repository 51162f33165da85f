// The type of a tensor over each mesh axis before and after a collective, where types are checked (core/spmd). Packed
// into one word so that an event can carry it. Text form: "partial -> replicated over tp, varying over dp". Torch-free.
// Thread rule: values.
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
  // The axes that a user sets, in the order in which text() lists them. The other axes are parts or products of these.
  static constexpr std::array<Axis, 7> kAxes = {Axis::kTp, Axis::kCp,  Axis::kDp, Axis::kPp,
                                                Axis::kEp, Axis::kEtp, Axis::kEdp};
  static constexpr uint32_t kEnd = 1U << (4 * kAxes.size());

  TypeChange() = default;
  // REQUIRES: bits < kEnd.
  explicit constexpr TypeChange(uint32_t bits) : bits_(bits) {}

  // REQUIRES: `axis` is in kAxes.
  void set(Axis axis, AxisType before, AxisType after);
  AxisType before(Axis axis) const;
  AxisType after(Axis axis) const;

  constexpr bool known() const { return bits_ != 0; }  // true if it is known over at least one axis
  constexpr uint32_t bits() const { return bits_; }
  // The information on which both agree; axes over which they differ become unknown.
  TypeChange common(const TypeChange& other) const;

  std::string text() const;
  static std::optional<TypeChange> parsed(std::string_view text);  // nothing if text() could not have produced it

  bool operator==(const TypeChange&) const = default;

 private:
  uint32_t bits_ = 0;
};

}  // namespace ranklab
