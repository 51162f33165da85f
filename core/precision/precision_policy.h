// Decides which module computes in which precision, and by which rule. Rules, in rising precedence (nano-train's, made
// exact):
//   1. the recipe: products of all linear modules in its formats;
//   2. include and exclude patterns: modules that are not selected stay in the type of the parameters;
//   3. modules that the recipe keeps in high precision stay so, even if included;
//   4. PATTERN=DTYPE: the type of a module's unquantized products, the last match wins; an error if the module is
//      quantized;
//   5. MODULE=DTYPE, an exact name: the same, and the module is not quantized.
// Patterns are globs (* any text, ? one character) of module names ("layers.3.mlp.gate_up"). Torch-free. Thread rule:
// immutable, share freely.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/precision/recipe.h"

namespace ranklab {

// A module that multiplies tokens by a matrix, or another module that a pattern may name by mistake.
struct PolicyModule {
  std::string name;
  std::vector<int64_t> shape = {};  // shape of its weight in the unsharded model
  bool linear = true;               // its products may be quantized (not those of norms, routers and embeddings)
};

struct PrecisionRules {
  std::vector<std::string> include = {};  // empty: all
  std::vector<std::string> exclude = {};
  std::vector<std::pair<std::string, DType>> compute_rules = {};
  std::vector<std::pair<std::string, DType>> compute_overrides = {};
};

struct ModulePrecision {
  std::string module;
  LinearPrecision linear = {};       // the formats, if quantized()
  DType compute = DType::kBFloat16;  // type of the products if not quantized
  std::string rule;                  // which rule decided: "recipe deepseek_v3", "--low-precision-exclude 'head'"
};

class PrecisionPolicy {
 public:
  // Throws kInvalidArgument for a pattern or name that matches no module or only modules without products, a module
  // that is named twice, a quantized module with a type (rule 4), or a recipe whose formats no module uses.
  PrecisionPolicy(PrecisionRecipe recipe, const PrecisionRules& rules, const std::vector<PolicyModule>& modules);

  const PrecisionRecipe& recipe() const { return recipe_; }
  // Only linear modules, in the order in which the modules were given.
  const std::vector<ModulePrecision>& modules() const { return modules_; }
  // Whether any module's products are quantized.
  bool quantizes() const;
  // Null if the module is not linear or unknown.
  const ModulePrecision* find(const std::string& module) const;
  // The precision in which a parameter ("layers.3.mlp.down.weight") is gathered: the recipe's `gather` if its module is
  // quantized.
  TensorPrecision gather_of(const std::string& parameter) const;

 private:
  PrecisionRecipe recipe_;
  std::vector<ModulePrecision> modules_;
  std::map<std::string, size_t> by_name_;
};

// Whether a glob matches the whole name.
bool matches(const std::string& pattern, const std::string& name);
// The name with each number replaced by a star: "layers.*.mlp.gate_up".
std::string without_numbers(const std::string& module);

}  // namespace ranklab
