#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/museum/exhibit.h"
#include "core/museum/exhibits/exhibits.h"

namespace ranklab {
namespace {

// In the order of a step: weights and data, forward, backward, reductions, norm, update, what comes after.
constexpr const Exhibit* kExhibits[] = {
    &museum::output_norm_partial,
    &museum::norm_unreduced,
    &museum::norm_averaged,
};

constexpr auto kKinds =
    std::to_array<std::string_view>({"missing sum", "wrong scale", "wrong group", "wrong place", "stale",
                                     "not synchronized", "wrong random numbers", "too few bits", "lost state", "hang"});
static_assert(kKinds.size() == static_cast<size_t>(BugKind::kCount));

}  // namespace

std::string_view name(BugKind kind) { return kKinds.at(static_cast<size_t>(kind)); }

std::span<const Exhibit* const> exhibits() { return kExhibits; }

const Exhibit* find_exhibit(std::string_view name) {
  const auto* const found = std::ranges::find(kExhibits, name, &Exhibit::name);
  return found == std::end(kExhibits) ? nullptr : *found;
}

std::vector<InjectedBug> bugs_named(const std::string& names) {
  std::vector<InjectedBug> bugs;
  for (size_t begin = 0; begin < names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    begin = end + 1;
    if (const Exhibit* exhibit = find_exhibit(name)) {
      bugs.push_back(exhibit->bug);
      continue;
    }
    std::vector<std::string> known;
    for (const Exhibit* exhibit : kExhibits) known.emplace_back(exhibit->name);
    const std::string nearest = nearest_name(name, known);
    throw Error(ErrorKind::kInvalidArgument,
                {.where = "--inject",
                 .what = "the museum has no such bug",
                 .got = quote(name),
                 .want = "names of `ranklab museum list`, apart by commas",
                 .fix = nearest.empty() ? "ranklab museum list" : "did you mean " + quote(nearest) + "?"});
  }
  return bugs;
}

}  // namespace ranklab
