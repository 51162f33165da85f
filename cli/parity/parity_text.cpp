#include "cli/parity/parity_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/common/style.h"
#include "cli/common/table.h"
#include "core/base/text.h"
#include "core/parity/epsilon.h"

namespace ranklab {
namespace {

constexpr size_t kShownLater = 6;

std::string step_text(const TensorKey& key) {
  return strprintf("step %lld, %s", static_cast<long long>(key.step), std::string(name(key.phase)).c_str());
}

std::string ranks_text(const ParityMesh& mesh, const std::vector<int>& ranks) {
  if (static_cast<int>(ranks.size()) == mesh.world_size()) return "all ranks";
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(strprintf("%d (%s)", rank, mesh.label(rank).c_str()));
  return (ranks.size() == 1 ? "rank " : "ranks ") + join(names, ", ");
}

// The tensors just before the first wrong one, which are right.
std::string before_text(const ParityResult& result) {
  std::string text;
  const auto& all = result.comparison.verdicts;
  const auto first = std::ranges::find_if(all, &TensorVerdict::wrong) - all.begin();
  for (auto i = std::max<std::ptrdiff_t>(0, first - 2); i < first; ++i) {
    const TensorVerdict& one = all[static_cast<size_t>(i)];
    text += "  right before it  " + one.key.text() + ": " + eps_text(one.worst.eps) + " of " + eps_text(one.tolerance) +
            " allowed\n";
  }
  return text;
}

std::string later_text(const ParityResult& result) {
  std::string text;
  size_t shown = 0;
  const TensorVerdict* first = result.wrong();
  for (const TensorVerdict& one : result.comparison.verdicts) {
    if (!one.wrong() || &one == first) continue;
    if (shown++ == kShownLater) break;
    text += strprintf("  %-18s %s: %s\n", step_text(one.key).c_str(), one.key.text().c_str(),
                      eps_text(one.worst.eps).c_str());
  }
  const size_t later = result.comparison.count_wrong() - 1;
  if (later == 0) return "";
  return strprintf("What follows from it: %zu of %zu tensors\n", later, result.comparison.verdicts.size()) + text +
         (later > kShownLater ? strprintf("  ... and %zu more\n", later - kShownLater) : "");
}

std::string needs_text(const ParityResult& result) {
  if (result.narrowed.empty()) return "";
  std::vector<std::string> gone, stays;
  for (const NarrowedTo& one : result.narrowed) (one.gone ? gone : stays).push_back(one.flags);
  std::string text;
  if (!gone.empty()) text += "  it is gone with  " + join(gone, "; ") + "\n";
  if (!stays.empty()) text += "  it stays with     " + join(stays, "; ") + "\n";
  return text + "  smallest layout   " + result.smallest + "\n";
}

std::string difference_text(const ParityResult& result, const Style& style) {
  const TensorVerdict& wrong = *result.wrong();
  std::string text =
      style.red("DIFFERENT") + ", first in " + step_text(wrong.key) + ": " + style.bold(wrong.key.text()) + "\n";
  if (!wrong.broken.empty()) text += "  what              " + wrong.broken + "\n";
  if (wrong.worst.eps > 0)
    text += strprintf(
        "  how far           %s, allowed are %s\n  largest           %.9g instead of %.9g (%.3g ULP) at %s on %s\n",
        eps_text(wrong.worst.eps).c_str(), eps_text(wrong.tolerance).c_str(), wrong.worst.got, wrong.worst.want,
        units_apart(wrong.worst.got, wrong.worst.want, epsilon_of(result.type)), result.place.c_str(),
        ranks_text(result.mesh, {wrong.worst_rank}).c_str());
  text += "  wrong on          " + ranks_text(result.mesh, wrong.wrong_ranks) + "\n";
  if (!wrong.right_ranks.empty()) text += "  right on          " + ranks_text(result.mesh, wrong.right_ranks) + "\n";
  if (!result.where.empty()) text += "  where             " + result.where + "\n";
  text += before_text(result);
  for (const Explanation& one : result.why) text += "  why               " + one.what + "\n";
  return text;
}

}  // namespace

std::string eps_text(double eps) { return eps > 1e200 ? "not finite" : strprintf("%.3g eps", eps); }

std::string parity_text(const ParityResult& result) {
  const Style style = style_for(stdout);
  const ParityComparison& seen = result.comparison;
  std::string text =
      result.title + " against " + result.reference +
      strprintf(", %s: %zu tensors in %zu pieces\n", c10::toString(result.type), seen.verdicts.size(), seen.pieces);
  if (!result.ended.empty()) text += style.red("FAILED") + ": " + result.ended + "\n";
  if (result.wrong() != nullptr) text += difference_text(result, style);
  if (result.differs()) {
    text += needs_text(result);
    if (!result.axis().empty()) text += "  to blame          " + style.bold(result.axis()) + "\n";
    if (result.wrong() != nullptr) text += later_text(result);
    return text;
  }
  text += style.green("SAME");
  if (const TensorVerdict* closest = seen.closest())
    text += strprintf(": closest to its tolerance is %s in %s, %s of %s allowed", closest->key.text().c_str(),
                      step_text(closest->key).c_str(), eps_text(closest->worst.eps).c_str(),
                      eps_text(closest->tolerance).c_str());
  text += "\n";
  if (!seen.not_compared.empty())
    text += strprintf("not compared: %zu tensors that only one of the two runs has\n", seen.not_compared.size());
  return text;
}

nlohmann::ordered_json parity_json(const ParityResult& result) {
  using Json = nlohmann::ordered_json;
  const auto tensor = [](const TensorVerdict& one) {
    return Json{{"step", one.key.step},           {"phase", name(one.key.phase)},  {"name", one.key.name},
                {"kind", one.key.kind},           {"eps", one.worst.eps},          {"tolerance_eps", one.tolerance},
                {"wrong_ranks", one.wrong_ranks}, {"right_ranks", one.right_ranks}};
  };
  Json json = {{"layout", result.title},
               {"reference", result.reference},
               {"same", !result.differs()},
               {"tensors", result.comparison.verdicts.size()},
               {"pieces", result.comparison.pieces},
               {"not_compared", result.comparison.not_compared.size()},
               {"wrong", result.comparison.count_wrong()}};
  if (const TensorVerdict* closest = result.comparison.closest()) json["closest"] = tensor(*closest);
  if (!result.ended.empty()) json["ended"] = result.ended;
  if (const TensorVerdict* wrong = result.wrong()) {
    json["first"] = tensor(*wrong);
    json["first"]["got"] = wrong->worst.got;
    json["first"]["want"] = wrong->worst.want;
    json["first"]["ulp"] = units_apart(wrong->worst.got, wrong->worst.want, epsilon_of(result.type));
    json["first"]["place"] = result.place;
    json["first"]["where"] = result.where;
    json["first"]["broken"] = wrong->broken;
    for (const Explanation& one : result.why) json["why"].push_back({{"what", one.what}, {"axes", one.axes}});
  }
  for (const NarrowedTo& one : result.narrowed)
    json["narrowed"].push_back({{"axis", one.axis}, {"flags", one.flags}, {"gone", one.gone}});
  if (result.differs()) {
    json["smallest"] = result.smallest;
    json["axis"] = result.axis();
  }
  return json;
}

}  // namespace ranklab
