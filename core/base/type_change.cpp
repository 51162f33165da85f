#include "core/base/type_change.h"

#include <algorithm>

namespace ranklab {
namespace {

constexpr std::string_view kOver = " over ", kTo = " -> ", kNext = ", ";

// Each axis takes four bits.
uint32_t shift_of(Axis axis) {
  return 4 * static_cast<uint32_t>(std::ranges::find(TypeChange::kAxes, axis) - TypeChange::kAxes.begin());
}

std::optional<AxisType> type_named(std::string_view text) {
  for (size_t i = 0; i < static_cast<size_t>(AxisType::kCount); ++i)
    if (name(static_cast<AxisType>(i)) == text) return static_cast<AxisType>(i);
  return {};
}

std::optional<Axis> axis_named(std::string_view text) {
  const auto found = std::ranges::find(TypeChange::kAxes, text, [](Axis axis) { return name(axis); });
  return found == TypeChange::kAxes.end() ? std::nullopt : std::optional(*found);
}

}  // namespace

void TypeChange::set(Axis axis, AxisType before, AxisType after) {
  const uint32_t shift = shift_of(axis);
  bits_ &= ~(15U << shift);
  bits_ |= (static_cast<uint32_t>(before) | static_cast<uint32_t>(after) << 2) << shift;
}

AxisType TypeChange::before(Axis axis) const { return static_cast<AxisType>(bits_ >> shift_of(axis) & 3); }
AxisType TypeChange::after(Axis axis) const { return static_cast<AxisType>(bits_ >> (shift_of(axis) + 2) & 3); }

TypeChange TypeChange::common(const TypeChange& other) const {
  TypeChange out;
  for (const Axis axis : kAxes)
    if (before(axis) == other.before(axis) && after(axis) == other.after(axis))
      out.set(axis, before(axis), after(axis));
  return out;
}

std::string TypeChange::text() const {
  std::string out;
  for (const Axis axis : kAxes) {
    const AxisType from = before(axis), to = after(axis);
    if (from == AxisType::kUnknown && to == AxisType::kUnknown) continue;
    if (!out.empty()) out += kNext;
    out += name(from);
    if (to != from) (out += kTo) += name(to);
    (out += kOver) += name(axis);
  }
  return out;
}

std::optional<TypeChange> TypeChange::parsed(std::string_view text) {
  TypeChange change;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = std::min(rest.find(kNext), rest.size());
    const std::string_view one = rest.substr(0, end);
    rest.remove_prefix(std::min(end + kNext.size(), rest.size()));
    const size_t over = one.find(kOver);
    if (over == std::string_view::npos) return {};
    const std::string_view types = one.substr(0, over);
    const size_t to = types.find(kTo);
    const std::optional<AxisType> from = type_named(types.substr(0, to)),
                                  into =
                                      to == std::string_view::npos ? from : type_named(types.substr(to + kTo.size()));
    const std::optional<Axis> axis = axis_named(one.substr(over + kOver.size()));
    if (!from || !into || !axis) return {};
    change.set(*axis, *from, *into);
  }
  // Each change has only one text: no axis appears twice, and the order is fixed.
  return change.text() == text ? std::optional(change) : std::nullopt;
}

}  // namespace ranklab
