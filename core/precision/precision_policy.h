// Which module computes in which precision, and why. Rules, in rising order (nano-train's, made exact):
//   1. the recipe: products of all linear modules in its formats;
//   2. include and exclude patterns: the others stay in the type of the parameters;
//   3. what the recipe keeps in high precision stays so, whatever was included;
//   4. PATTERN=DTYPE: products of a module that is not quantized in this type, the last match wins; a module that is
//      quantized is refused;
//   5. MODULE=DTYPE, an exact name: the same, and the module is not quantized.
// Patterns are globs (* any text, ? one character) of module names ("layers.3.mlp.gate_up"). Torch-free. Thread rule:
// immutable, share freely.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/precision/recipe.h"

namespace ranklab {

// A module that multiplies tokens with a matrix, or one that patterns may name by mistake.
struct PolicyModule {
  std::string name;
  std::vector<int64_t> shape = {};  // of its weight, in the whole model
  bool linear = true;               // its products may be quantized (norms, routers and embeddings: not)
};

struct PrecisionRules {
  std::vector<std::string> include = {};  // empty: all
  std::vector<std::string> exclude = {};
  std::vector<std::pair<std::string, DType>> compute_rules = {};
  std::vector<std::pair<std::string, DType>> compute_overrides = {};
};

struct ModulePrecision {
  std::string module;
  LinearPrecision linear = {};       // quantized(): in these formats
  DType compute = DType::kBFloat16;  // of products that are not quantized
  std::string rule;                  // which rule decided: "recipe deepseek_v3", "--low-precision-exclude 'head'"
};

class PrecisionPolicy {
 public:
  // Throws kInvalidArgument: a pattern or name that no module has, one that names a module without products, a module
  // named twice, a module that is quantized and has a type, a recipe with formats that no module takes.
  PrecisionPolicy(PrecisionRecipe recipe, const PrecisionRules& rules, const std::vector<PolicyModule>& modules);

  const PrecisionRecipe& recipe() const { return recipe_; }
  // In the order of the modules given, linear ones only.
  const std::vector<ModulePrecision>& modules() const { return modules_; }
  // Whether any module's products are in few bits.
  bool quantizes() const;
  // Null when the module has nothing to be decided (a name that was not given).
  const ModulePrecision* find(const std::string& module) const;
  // How a parameter ("layers.3.mlp.down.weight") is gathered: as the recipe says where its module is quantized.
  TensorPrecision gather_of(const std::string& parameter) const;

 private:
  PrecisionRecipe recipe_;
  std::vector<ModulePrecision> modules_;
  std::map<std::string, size_t> by_name_;
};

// Whether a glob matches the whole name.
bool matches(const std::string& pattern, const std::string& name);
// The name with a star for each number in it: "layers.*.mlp.gate_up".
std::string without_numbers(const std::string& module);

}  // namespace ranklab
