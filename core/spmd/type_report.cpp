#include "core/spmd/type_report.h"

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "core/base/error.h"

namespace ranklab {

const char* name(TypePhase phase) {
  constexpr std::array kNames = {"forward", "backward", "reduction", "gradient norm", "update"};
  return kNames[static_cast<size_t>(phase)];
}

void TypeReport::add(TypeFinding finding) {
  const std::lock_guard lock(mutex_);
  findings_.push_back(std::move(finding));
}

void TypeReport::count(int64_t operators, int64_t gradients, int64_t untyped) {
  const std::lock_guard lock(mutex_);
  operators_ += operators;
  gradients_ += gradients;
  untyped_ += untyped;
}

std::vector<TypeFinding> TypeReport::findings() const {
  std::vector<TypeFinding> all = findings_;
  std::ranges::sort(all, [](const TypeFinding& a, const TypeFinding& b) {
    return std::tie(a.phase, a.order, a.rank) < std::tie(b.phase, b.order, b.rank);
  });
  std::set<std::tuple<TypePhase, std::string, std::string, Axis, std::string>> known;
  std::erase_if(all, [&](const TypeFinding& f) {
    return !known.insert({f.phase, f.module, f.what, f.axis, f.got}).second;
  });
  return all;
}

std::string TypeReport::first_named() const {
  const std::vector<TypeFinding> all = findings();
  return all.empty() ? "" : all[0].module + ", " + std::string(name(all[0].axis));
}

void TypeReport::check() const {
  const std::vector<TypeFinding> all = findings();
  if (all.empty()) return;
  const TypeFinding& first = all.front();
  const std::string axis = first.axis == Axis::kCount ? "" : ", over " + std::string(name(first.axis));
  throw Error(ErrorKind::kCheckFailed,
              {.where = "gradient types: " + first.module + ", " + name(first.phase) + axis,
               .what = first.got,
               .got = first.what + ", " + first.type + " on rank " + std::to_string(first.rank),
               .want = first.want,
               .fix = first.fix});
}

}  // namespace ranklab
