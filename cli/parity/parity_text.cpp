#include "cli/parity/parity_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/common/style.h"
#include "cli/common/table.h"
#include "core/base/text.h"
#include "core/parity/epsilon.h"
#include "core/sim/op_cost.h"

namespace ranklab {
namespace {

constexpr size_t kShownLater = 6;
using Facts = std::vector<viz::ParityFact>;

std::string step_text(const TensorKey& key) {
  return strprintf("step %lld, %s", static_cast<long long>(key.step), std::string(name(key.phase)).c_str());
}

std::string ranks_text(const ParityMesh& mesh, const std::vector<int>& ranks) {
  if (static_cast<int>(ranks.size()) == mesh.world_size()) return "all ranks";
  std::vector<std::string> names;
  for (const int rank : ranks) names.push_back(strprintf("%d (%s)", rank, mesh.label(rank).c_str()));
  return (ranks.size() == 1 ? "rank " : "ranks ") + join(names, ", ");
}

// Adds the last tensors before the first wrong one; these are correct.
void add_before(const ParityResult& result, Facts& facts) {
  const auto& all = result.comparison.verdicts;
  const auto first = std::ranges::find_if(all, &TensorVerdict::wrong) - all.begin();
  for (auto i = std::max<std::ptrdiff_t>(0, first - 2); i < first; ++i) {
    const TensorVerdict& one = all[static_cast<size_t>(i)];
    facts.push_back({"right before it",
                     one.key.text() + ": " + eps_text(one.worst.eps) + " of " + eps_text(one.tolerance) + " allowed"});
  }
}

void add_difference(const ParityResult& result, Facts& facts) {
  constexpr bool kBrief = true;
  const TensorVerdict& wrong = *result.wrong();
  if (!wrong.broken.empty()) facts.push_back({"what", wrong.broken, kBrief});
  if (wrong.worst.eps > 0) {
    facts.push_back(
        {"how far", eps_text(wrong.worst.eps) + ", with a tolerance of " + eps_text(wrong.tolerance), kBrief});
    facts.push_back(
        {"largest", strprintf("%.9g instead of %.9g (%.3g ULP) at %s on %s", wrong.worst.got, wrong.worst.want,
                              units_apart(wrong.worst.got, wrong.worst.want, epsilon_of(result.type)),
                              result.place.c_str(), ranks_text(result.mesh, {wrong.worst_rank}).c_str())});
  }
  facts.push_back({"wrong on", ranks_text(result.mesh, wrong.wrong_ranks)});
  if (!wrong.right_ranks.empty()) facts.push_back({"right on", ranks_text(result.mesh, wrong.right_ranks)});
  if (!result.where.empty()) facts.push_back({"where", result.where});
  add_before(result, facts);
  for (const Explanation& one : result.why) facts.push_back({"why", one.what, &one == result.why.data()});
}

void add_needs(const ParityResult& result, Facts& facts) {
  if (result.narrowed.empty()) return;
  std::vector<std::string> gone, stays;
  for (const NarrowedTo& one : result.narrowed) (one.gone ? gone : stays).push_back(one.flags);
  if (!gone.empty()) facts.push_back({"disappears with", join(gone, "; ")});
  if (!stays.empty()) facts.push_back({"remains with", join(stays, "; ")});
  facts.push_back({"smallest layout", result.smallest});
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

std::string same_text(const ParityResult& result) {
  const TensorVerdict* closest = result.comparison.closest();
  if (closest == nullptr) return "";
  if (closest->worst.eps == 0) return ": every tensor has the same bits";
  return strprintf(": closest to its tolerance is %s in %s, %s of %s allowed", closest->key.text().c_str(),
                   step_text(closest->key).c_str(), eps_text(closest->worst.eps).c_str(),
                   eps_text(closest->tolerance).c_str());
}

// "head grad_input, layers.3.mlp output, ...": each once, whatever steps it is of.
std::string some_of(const std::vector<TensorKey>& keys) {
  constexpr size_t kMost = 4;
  std::vector<std::string> names;
  for (const TensorKey& key : keys) {
    if (std::ranges::find(names, key.text()) != names.end()) continue;
    names.push_back(names.size() == kMost ? "..." : key.text());
    if (names.size() > kMost) break;
  }
  return join(names, ", ");
}

}  // namespace

std::string eps_text(double eps) { return eps > 1e100 ? "not finite" : strprintf("%.3g eps", eps); }

std::vector<viz::ParityFact> parity_facts(const ParityResult& result) {
  Facts facts;
  if (result.wrong() != nullptr) add_difference(result, facts);
  if (!result.differs()) return facts;
  add_needs(result, facts);
  if (!result.axis().empty()) facts.push_back({"to blame", result.axis(), true});
  return facts;
}

std::string parity_verdict(const ParityResult& result, const Style& style) {
  const bool wide = !result.low_precision.empty();
  if (!result.differs()) return style.green("SAME") + same_text(result) + (wide ? "; in fp32, too" : "");
  const TensorVerdict* wrong = result.wrong();
  const std::string failed = result.ended.empty() ? "" : style.red("FAILED") + ": " + result.ended;
  if (wrong == nullptr) return failed;
  return failed + (failed.empty() ? "" : "\n") + style.red("DIFFERENT") +
         (wide ? " in fp32 (the rounding of " + result.low_precision + " hides it)" : "") + ", first in " +
         step_text(wrong->key) + ": " + style.bold(wrong->key.text());
}

std::string parity_text(const ParityResult& result) {
  const Style style = style_for(stdout);
  const ParityComparison& seen = result.comparison;
  std::string text = result.title + " against " + result.reference + ", " + std::string(name(dtype_of(result.type))) +
                     strprintf(": %zu tensors in %zu pieces\n", seen.verdicts.size(), seen.pieces) +
                     parity_verdict(result, style) + "\n";
  for (const viz::ParityFact& fact : parity_facts(result))
    text +=
        strprintf("  %-17s ", fact.what.c_str()) + (fact.what == "to blame" ? style.bold(fact.text) : fact.text) + "\n";
  if (result.wrong() != nullptr) text += later_text(result);
  if (!result.differs() && !seen.not_compared.empty())
    text += strprintf("not compared: %zu tensors that only one of the two runs has, or with a different shape: %s\n",
                      seen.not_compared.size(), some_of(seen.not_compared).c_str());
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
               {"type", name(dtype_of(result.type))},
               {"tensors", result.comparison.verdicts.size()},
               {"pieces", result.comparison.pieces},
               {"not_compared", result.comparison.not_compared.size()},
               {"wrong", result.comparison.count_wrong()}};
  if (const TensorVerdict* closest = result.comparison.closest()) json["closest"] = tensor(*closest);
  if (!result.low_precision.empty()) json["fp32"] = result.differs() ? "different" : "same";
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
