#include "core/museum/hunt.h"

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/numbers/philox.h"
#include "core/base/text.h"
#include "core/precision/precision_policy.h"

namespace ranklab {
namespace {

constexpr uint64_t kOrder = 27;  // any number: exhibits are sorted by topic, so the hunts are shuffled
constexpr auto kAxes = std::to_array<const char*>({"tp", "cp", "dp", "pp", "ep", "none"});

}  // namespace

int hunt_count() { return static_cast<int>(exhibits().size()); }

Hunt hunt_numbered(int number) {
  RANKLAB_CHECK(number >= 1 && number <= hunt_count(), ErrorKind::kInvalidArgument, .where = "hunt",
                .what = "there is no hunt with this number", .got = std::to_string(number),
                .want = "1 to " + std::to_string(hunt_count()), .fix = "see `ranklab lesson hunt`");
  const RandomPermutation order(exhibits().size(), kOrder, 0);
  return {number, exhibits()[order(static_cast<uint64_t>(number - 1))]};
}

std::string story_command(const std::string& names) {
  const std::string first = names.substr(0, names.find(','));
  const std::string hunt = "hunt-";
  return first.starts_with(hunt) ? "ranklab lesson hunt " + first.substr(hunt.size()) : "ranklab museum show " + first;
}

HuntGrade grade(const Hunt& hunt, const std::string& module, const std::string& axis) {
  RANKLAB_CHECK(!module.empty() && module.find_first_of("*?") == std::string::npos, ErrorKind::kInvalidArgument,
                .where = "hunt", .what = "not the name of one module", .got = quote(module),
                .want = "a module or parameter, as in layers.0.mlp, or grad_norm", .fix = "name one");
  RANKLAB_CHECK(std::ranges::find(kAxes, axis) != kAxes.end(), ErrorKind::kInvalidArgument, .where = "hunt",
                .what = "not an axis", .got = quote(axis), .want = "tp, cp, dp, pp, ep or none",
                .fix = "name the axis whose ranks it is about");
  return {.module = matches(hunt.exhibit->guilty_module, module), .axis = axis == hunt.exhibit->guilty_axis};
}

}  // namespace ranklab
