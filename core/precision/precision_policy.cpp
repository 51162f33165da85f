#include "core/precision/precision_policy.h"

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "core/base/named_rows.h"
#include "core/base/text.h"

namespace ranklab {
namespace {

constexpr const char* kInclude = "--low-precision-include";
constexpr const char* kExclude = "--low-precision-exclude";
constexpr const char* kRule = "--module-compute-dtype-rule";
constexpr const char* kOverride = "--module-compute-dtype-override";

[[noreturn]] void refuse(const std::string& what, const std::string& got, const std::string& want,
                         const std::string& fix) {
  throw Error(ErrorKind::kInvalidArgument, {.where = "precision", .what = what, .got = got, .want = want, .fix = fix});
}

std::string option(const char* flag, const std::string& value) { return std::string(flag) + " " + quote(value); }
std::string with_type(const std::string& name, DType dtype) { return name + "=" + std::string(ranklab::name(dtype)); }

// The module name nearest to `text`, as the end of an error message's sentence. Patterns are compared with names whose
// numbers are replaced by stars: "layers.*.mlp.gate_up".
std::string nearest_module(const std::string& text, const std::vector<PolicyModule>& modules, bool pattern) {
  std::vector<std::string> names;
  for (const PolicyModule& module : modules) {
    if (!module.linear) continue;
    const std::string name = pattern ? without_numbers(module.name) : module.name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return did_you_mean(text, names, "ranklab precision explain lists the modules");
}

void check_names(const std::vector<PolicyModule>& modules) {
  std::map<std::string, int> seen;
  for (const PolicyModule& module : modules) {
    if (++seen[module.name] > 1)
      refuse("two modules have one name, so that no rule can tell them apart", quote(module.name), "names of their own",
             "rename one of them");
  }
}

void check_pattern(const char* flag, const std::string& pattern, const std::string& got,
                   const std::vector<PolicyModule>& modules) {
  const PolicyModule* other = nullptr;
  for (const PolicyModule& module : modules) {
    if (!matches(pattern, module.name)) continue;
    if (module.linear) return;
    other = &module;
  }
  if (other == nullptr)
    refuse(std::string("no module has a name like this pattern of ") + flag, option(flag, got),
           "a pattern that some module's name matches", nearest_module(pattern, modules, true));
  refuse(std::string("this pattern of ") + flag + " names only modules without products of a precision to choose",
         option(flag, got) + ", which is " + quote(other->name),
         "linear layers (norms, routers and embeddings are not)", nearest_module(pattern, modules, true));
}

void check_patterns(const PrecisionRules& rules, const std::vector<PolicyModule>& modules) {
  for (const std::string& pattern : rules.include) check_pattern(kInclude, pattern, pattern, modules);
  for (const std::string& pattern : rules.exclude) check_pattern(kExclude, pattern, pattern, modules);
  for (const auto& [pattern, dtype] : rules.compute_rules)
    check_pattern(kRule, pattern, with_type(pattern, dtype), modules);
}

void check_overrides(const PrecisionRules& rules, const std::vector<PolicyModule>& modules) {
  std::map<std::string, DType> seen;
  for (const auto& [name, dtype] : rules.compute_overrides) {
    const auto found = std::ranges::find(modules, name, &PolicyModule::name);
    const std::string got = option(kOverride, with_type(name, dtype));
    if (found == modules.end())
      refuse("no module has this name", got, "the exact name of a linear layer (patterns: " + std::string(kRule) + ")",
             nearest_module(name, modules, false));
    if (!found->linear)
      refuse("this module has no products of a precision to choose", got,
             "a linear layer (norms, routers and embeddings are not)", nearest_module(name, modules, false));
    const auto [before, added] = seen.emplace(name, dtype);
    if (!added)
      refuse("one module is given a type twice", option(kOverride, with_type(name, before->second)) + " and " + got,
             "one of them", "leave one out");
  }
}

std::optional<std::string> first_match(const std::vector<std::string>& patterns, const std::string& name) {
  const auto found = std::ranges::find_if(patterns, [&](const std::string& pattern) { return matches(pattern, name); });
  if (found == patterns.end()) return std::nullopt;
  return *found;
}

// Rules 1 to 3.
ModulePrecision choose_format(const PrecisionRecipe& recipe, const PrecisionRules& rules, const std::string& module) {
  const std::string by_recipe = "recipe " + recipe.name;
  ModulePrecision result{.module = module, .compute = recipe.compute, .rule = by_recipe};
  if (!recipe.linear.quantized()) return result;
  const std::optional<std::string> included = first_match(rules.include, module);
  if (!rules.include.empty() && !included) {
    result.rule = std::string("not in ") + kInclude;
  } else if (const auto excluded = first_match(rules.exclude, module)) {
    result.rule = option(kExclude, *excluded);
  } else if (const auto kept = first_match(recipe.high_precision, module)) {
    result.rule = by_recipe + " keeps " + quote(*kept);
  } else {
    result.linear = recipe.linear;
    if (included) result.rule = option(kInclude, *included);
  }
  return result;
}

// Rules 4 and 5.
void choose_type(ModulePrecision& module, const PrecisionRules& rules) {
  for (const auto& [name, dtype] : rules.compute_overrides) {
    if (name != module.module) continue;
    module.linear = {};
    module.compute = dtype;
    module.rule = option(kOverride, with_type(name, dtype));
    return;
  }
  for (auto rule = rules.compute_rules.rbegin(); rule != rules.compute_rules.rend(); ++rule) {
    if (!matches(rule->first, module.module)) continue;
    const std::string text = option(kRule, with_type(rule->first, rule->second));
    if (module.linear.quantized())
      refuse("a module cannot be quantized and have a type of its own",
             quote(module.module) + ": quantized by " + module.rule + ", and " + text, "one of the two",
             std::string("add it to ") + kExclude + ", narrow the pattern, or name it in " + kOverride);
    module.compute = rule->second;
    module.rule = text;
    return;
  }
}

}  // namespace

bool matches(const std::string& pattern, const std::string& name) {
  // Greedy, backtracking only to the last star.
  size_t p = 0, n = 0, star = std::string::npos, from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == name[n])) {
      ++p, ++n;
    } else if (star != std::string::npos) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  return std::all_of(pattern.begin() + static_cast<std::ptrdiff_t>(p), pattern.end(), [](char c) { return c == '*'; });
}

std::string without_numbers(const std::string& module) {
  std::string text;
  for (size_t begin = 0; begin <= module.size();) {
    const size_t end = std::min(module.find('.', begin), module.size());
    const std::string part = module.substr(begin, end - begin);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    text += (begin == 0 ? "" : ".") + (number ? "*" : part);
    begin = end + 1;
  }
  return text;
}

PrecisionPolicy::PrecisionPolicy(PrecisionRecipe recipe, const PrecisionRules& rules,
                                 const std::vector<PolicyModule>& modules)
    : recipe_(std::move(recipe)) {
  check_names(modules);
  check_patterns(rules, modules);
  check_overrides(rules, modules);
  bool quantized = false;
  for (const PolicyModule& module : modules) {
    if (!module.linear) continue;
    ModulePrecision precision = choose_format(recipe_, rules, module.name);
    choose_type(precision, rules);
    quantized = quantized || precision.linear.quantized();
    by_name_[module.name] = modules_.size();
    modules_.push_back(std::move(precision));
  }
  if (recipe_.linear.quantized() && !quantized)
    refuse("the recipe has formats, and no module is left to take them",
           "recipe " + recipe_.name + ", 0 of " + std::to_string(modules_.size()) + " linear modules quantized",
           "one module or more", std::string("widen ") + kInclude + ", narrow " + kExclude + ", or use --bf16");
}

bool PrecisionPolicy::quantizes() const {
  return std::ranges::any_of(modules_, [](const ModulePrecision& module) { return module.linear.quantized(); });
}

TensorPrecision PrecisionPolicy::gather_of(const std::string& parameter) const {
  constexpr std::string_view kSuffix = ".weight";
  if (!parameter.ends_with(kSuffix)) return {};
  const ModulePrecision* module = find(parameter.substr(0, parameter.size() - kSuffix.size()));
  return module != nullptr && module->linear.quantized() ? recipe_.gather : TensorPrecision{};
}

const ModulePrecision* PrecisionPolicy::find(const std::string& module) const {
  const auto found = by_name_.find(module);
  return found == by_name_.end() ? nullptr : &modules_[found->second];
}

}  // namespace ranklab
